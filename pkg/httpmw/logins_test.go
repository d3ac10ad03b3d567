package httpmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// observed returns a func that sends a request from an address through Observe to h.
func observed(t *testing.T, h http.Handler) func(from string) *httptest.ResponseRecorder {
	t.Helper()
	m, err := httpmw.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	h = httpmw.Observe(zap.NewNop(), m, nil)(h)
	return func(from string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/auth/authorize", http.NoBody)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

// limited answers requests that the limit admits.
func limited(limit func(context.Context) error) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if err := limit(r.Context()); err != nil {
			return err
		}
		ok(w, r)
		return nil
	})
}

func TestLogins_refuseAPeerThatAsksTooOften(t *testing.T) {
	t.Parallel()
	limits, clock, registry := newLimits(t)
	ask := observed(t, limited(limits.Logins(0.1, 0.3)))
	require.Equal(t, http.StatusOK, ask(nat).Code)
	w := ask(nat)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "10", w.Header().Get("Retry-After"))
	requireRefused(t, registry, "logins_per_peer", 1)
	// What one peer was refused is not counted for all.
	require.Equal(t, http.StatusOK, ask("192.0.2.2:1").Code)
	require.Equal(t, http.StatusOK, ask("192.0.2.3:1").Code)
	w = ask("192.0.2.4:1")
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "4", w.Header().Get("Retry-After"))
	requireRefused(t, registry, "logins", 1)
	clock.SetTime(clock.Now().Add(10 * time.Second))
	require.Equal(t, http.StatusOK, ask(nat).Code)
}

func TestLogins_haveNoLimitAtZero(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	ask := observed(t, limited(limits.Logins(0, 0)))
	for range 1_000 {
		require.Equal(t, http.StatusOK, ask(nat).Code)
	}
}

// One provider account after the other makes a User, an Organization and a Workspace each.
func TestSignUps_refuseAPeerThatMakesUsers(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	made := 0
	signUp := limits.SignUps(func(context.Context, *auth.Identity, bool) (*v1alpha1.User, error) {
		made++
		return &v1alpha1.User{}, nil
	}, 0.2, 0)
	ask := observed(t, httpapi.Handler(func(_ http.ResponseWriter, r *http.Request) error {
		_, err := signUp(r.Context(), &auth.Identity{}, false)
		return err
	}))
	require.Equal(t, http.StatusOK, ask(nat).Code)
	require.Equal(t, http.StatusOK, ask(nat).Code)
	require.Equal(t, http.StatusTooManyRequests, ask(nat).Code)
	require.Equal(t, http.StatusTooManyRequests, ask(nat).Code)
	require.Equal(t, 2, made)
	requireRefused(t, registry, "sign_ups_per_peer", 2)
	require.Equal(t, http.StatusOK, ask(another).Code)
}
