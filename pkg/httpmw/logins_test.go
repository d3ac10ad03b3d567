package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
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

// strangersOnly answers requests of strangers.
func strangersOnly(l *httpmw.Logins) http.Handler { return limited(l.Stranger) }

func TestLogins_refuseAPeerThatAsksTooOften(t *testing.T) {
	t.Parallel()
	limits, clock, registry := newLimits(t)
	ask := observed(t, strangersOnly(limits.Logins(httpmw.LoginRates{PerPeer: 0.1})))
	require.Equal(t, http.StatusOK, ask(nat).Code)
	w := ask(nat)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "10", w.Header().Get("Retry-After"))
	requireRefused(t, registry, "logins_per_peer", 1)
	// No number of other peers uses up what a peer has.
	for i := range 1_000 {
		require.Equal(t, http.StatusOK, ask(fmt.Sprintf("[2001:db8:%x::1]:1", i)).Code)
	}
	clock.SetTime(clock.Now().Add(10 * time.Second))
	require.Equal(t, http.StatusOK, ask(nat).Code)
}

func TestLogins_haveNoLimitAtZero(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	l := limits.Logins(httpmw.LoginRates{})
	for _, limit := range []func(context.Context) error{
		l.Stranger, l.Exchange, l.Device,
		func(context.Context) error { return l.Session("s") }, func(context.Context) error { return l.Person("alice") },
	} {
		ask := observed(t, limited(limit))
		for range 1_000 {
			require.Equal(t, http.StatusOK, ask(nat).Code)
		}
	}
}

// A flood with one genuine secret, or with one account, meets a limit of its own.
func TestLogins_limitASessionAndAPersonAlone(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	l := limits.Logins(httpmw.LoginRates{PerSession: 0.2, PerPerson: 0.1})
	require.NoError(t, l.Session("a"))
	require.NoError(t, l.Session("a"))
	require.True(t, errs.Is(l.Session("a"), errs.TooManyRequests))
	require.NoError(t, l.Session("b"))
	require.NoError(t, l.Person("alice"))
	require.True(t, errs.Is(l.Person("alice"), errs.TooManyRequests))
	require.NoError(t, l.Person("bob"))
	requireRefused(t, registry, "logins_per_session", 1)
	requireRefused(t, registry, "logins_per_person", 1)
}

// Each of 40 networks asks as often as it can. They have shares, and a network that comes later has
// one, too: another IPv4 address, another /48, and another /64 of a /48 that floods.
func TestLogins_aFloodFromFortyNetworksLeavesAShare(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]func(int) string{
		"IPv4": func(i int) string { return fmt.Sprintf("198.51.100.%d:1", i) },
		"/48s": func(i int) string { return fmt.Sprintf("[2001:db8:%x::1]:1", i) },
		"/64s": func(i int) string { return fmt.Sprintf("[2001:db8:0:%x::1]:1", i) },
	} {
		limits, clock, registry := newLimits(t)
		ask := observed(t, limited(limits.Logins(httpmw.LoginRates{Devices: 20, DevicesPerPeer: 1}).Device))
		for window := range 3 {
			clock.SetTime(time.Unix(1_000+int64(10*window), 0))
			admitted := 0
			for range 20 {
				for i := range 40 {
					if ask(from(i)).Code == http.StatusOK {
						admitted++
					}
				}
			}
			require.GreaterOrEqual(t, admitted, 40, name)
			require.LessOrEqual(t, admitted, 400, name)
			if window > 0 {
				require.LessOrEqual(t, admitted, 200, name)
			}
			for _, late := range []string{nat, fmt.Sprintf("[2001:db8:ffff:%x::1]:1", window), fmt.Sprintf("[2001:db8:0:f%x::1]:1", window)} {
				require.Equal(t, http.StatusOK, ask(late).Code, "%s: %s", name, late)
			}
		}
		require.NotZero(t, refusedBy(t, registry, "device_logins"), name)
	}
}

func TestLogins_sayWhenTheShareIsThereAgain(t *testing.T) {
	t.Parallel()
	limits, clock, registry := newLimits(t)
	ask := observed(t, limited(limits.Logins(httpmw.LoginRates{Exchanges: 0.2}).Exchange))
	clock.SetTime(clock.Now().Add(3 * time.Second))
	require.Equal(t, http.StatusOK, ask(nat).Code)
	require.Equal(t, http.StatusOK, ask(nat).Code)
	w := ask(nat)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "7", w.Header().Get("Retry-After"))
	requireRefused(t, registry, "logins", 1)
	clock.SetTime(clock.Now().Add(7 * time.Second))
	require.Equal(t, http.StatusOK, ask(nat).Code)
	clock.SetTime(clock.Now().Add(time.Hour))
	require.Equal(t, http.StatusOK, ask(nat).Code)
}

// Networks without number cannot fill the memory: a window has as many as it has requests.
func TestLogins_rememberABoundedNumberOfNetworks(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	ask := observed(t, limited(limits.Logins(httpmw.LoginRates{Exchanges: 10}).Exchange))
	admitted := 0
	for i := range 1_000 {
		if ask(fmt.Sprintf("[2001:db8:%x::1]:1", i)).Code == http.StatusOK {
			admitted++
		}
	}
	require.Equal(t, 100, admitted)
}

// signUps returns a func that signs a person up from an address, through the limit.
func signUps(t *testing.T, people registry, perPeer, all float64) (ask func(from, subject, username string) int, metrics *prometheus.Registry) {
	t.Helper()
	limits, _, metrics := newLimits(t)
	auditor := httpmw.NewAuditor(func(audit.Event) error { return nil }, clock.RealClock{}, nil, nil, nil)
	signUp := auditor.SignUp(people, people, httpmw.RegistrationOpen, limits.SignUps(perPeer, all), notInvited)
	return func(from, subject, username string) int {
		return observed(t, httpapi.Handler(func(_ http.ResponseWriter, r *http.Request) error {
			_, err := signUp(r.Context(), &auth.Identity{Issuer: "https://idp", Subject: subject, Username: username}, false)
			return err
		}))(from).Code
	}, metrics
}

// One provider account after the other makes a User, an Organization and a Workspace each.
func TestSignUps_refuseAPeerThatMakesUsers(t *testing.T) {
	t.Parallel()
	people := registry{}
	ask, metrics := signUps(t, people, 0.2, 0.3)
	require.Equal(t, http.StatusOK, ask(nat, "a", "kedge:a"))
	require.Equal(t, http.StatusOK, ask(nat, "b", "kedge:b"))
	require.Equal(t, http.StatusTooManyRequests, ask(nat, "c", "kedge:c"))
	require.Equal(t, http.StatusTooManyRequests, ask(nat, "d", "kedge:d"))
	require.Len(t, people, 2)
	requireRefused(t, metrics, "sign_ups_per_peer", 2)
	require.Equal(t, http.StatusOK, ask(another, "c", "kedge:c"))
	require.Equal(t, http.StatusTooManyRequests, ask(another, "d", "kedge:d"))
	requireRefused(t, metrics, "sign_ups", 1)
}

// Sign-ups of known people, and sign-ups that the hub refuses, keep no new person out.
func TestSignUps_areTakenByThoseWhoAreCreated(t *testing.T) {
	t.Parallel()
	people := registry{}
	ask, metrics := signUps(t, people, 0.1, 0.1)
	people.with("here", v1alpha1.RegistrationApproved)
	people["here"].Spec.RBACIdentity = "kedge:taken"
	for range 100 {
		require.Equal(t, http.StatusForbidden, ask(nat, "other", "kedge:taken"))
		require.Equal(t, http.StatusConflict, ask(nat, "nameless", "kedge:nameless"))
		require.Equal(t, http.StatusOK, ask(nat, "here", "kedge:taken"))
	}
	require.Equal(t, http.StatusOK, ask(nat, "new", "kedge:new"))
	require.Equal(t, http.StatusTooManyRequests, ask(nat, "newer", "kedge:newer"))
	requireRefused(t, metrics, "sign_ups_per_peer", 1)
}
