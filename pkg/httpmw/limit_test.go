package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// everybody is a cache in which every identity has a User.
type everybody struct{}

func (everybody) ByIdentity(_, subject string) (*v1alpha1.User, bool) {
	u := &v1alpha1.User{}
	u.Name = subject
	return u, true
}

func (everybody) ByUsername(string) (*v1alpha1.User, bool) { return nil, false }

func (e everybody) ByName(name string) (*v1alpha1.User, bool) { return e.ByIdentity("", name) }

// routes returns routes behind Authenticate. The token is the name of the caller; a token that
// begins with "ops-" has the group ops, one that begins with "audit-" the group audit.
func routes(mount func(chi.Router)) http.Handler {
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		id := &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}
		if len(token) > 4 && token[:4] == "ops-" {
			id.Groups = []string{"others", "ops"}
		}
		if strings.HasPrefix(token, "audit-") {
			id.Groups = []string{"audit"}
		}
		return id, true, nil
	})
	r := chi.NewRouter()
	r.Use(httpmw.Authenticate(authentication(tokens, everybody{}, nil)))
	mount(r)
	return r
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// newLimits returns limits at a clock that stands still, and their metrics.
func newLimits(t *testing.T) (*httpmw.Limits, *clocktesting.FakePassiveClock, *prometheus.Registry) {
	t.Helper()
	clock, registry := clocktesting.NewFakePassiveClock(time.Unix(1_000, 0)), prometheus.NewRegistry()
	l, err := httpmw.NewLimits(clock, registry)
	require.NoError(t, err)
	return l, clock, registry
}

// refusedBy returns the number of refusals by one limit.
func refusedBy(t *testing.T, registry *prometheus.Registry, limit string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "kedge_limited_total" && m.GetLabel()[0].GetValue() == limit {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// requireRefused requires the count of refusals by one limit.
func requireRefused(t *testing.T, registry *prometheus.Registry, limit string, want int) {
	t.Helper()
	require.InDelta(t, want, refusedBy(t, registry, limit), 0, limit)
}

func TestPerPerson_saysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	limits, clock, registry := newLimits(t)
	h := routes(func(r chi.Router) {
		r.With(limits.PerPerson("test", 0.4)).Get("/limited", ok)
		r.With(limits.PerPerson("off", 0)).Get("/unlimited", ok)
		r.Get("/free", ok)
	})
	ask := func(name string) int { return get(h, "/limited", as(name)).Code }
	burst := func(name string, allowed int) {
		t.Helper()
		for range allowed {
			require.Equal(t, http.StatusOK, ask(name))
		}
		refused := get(h, "/limited", as(name))
		require.Equal(t, http.StatusTooManyRequests, refused.Code)
		require.Equal(t, "3", refused.Header().Get("Retry-After"), "two and a half seconds, rounded up")
		require.Contains(t, refused.Body.String(), `"reason":"TooManyRequests"`)
	}
	burst("alice", 4)
	burst("bob", 4)
	requireRefused(t, registry, "test", 2)
	require.Equal(t, http.StatusOK, get(h, "/free", as("alice")).Code)
	for range 100 {
		require.Equal(t, http.StatusOK, get(h, "/unlimited", as("alice")).Code)
	}
	clock.SetTime(time.Unix(1_002, 499_000_000))
	require.Equal(t, http.StatusTooManyRequests, ask("alice"))
	clock.SetTime(time.Unix(1_005, 0))
	burst("alice", 2)
	clock.SetTime(time.Unix(2_000, 0))
	burst("alice", 4)
	requireRefused(t, registry, "off", 0)
}

// A refused request costs nothing: a client that keeps asking is admitted as soon as one that
// waits.
func TestPerPerson_doesNotCountRefusedRequests(t *testing.T) {
	t.Parallel()
	limits, clock, _ := newLimits(t)
	h := routes(func(r chi.Router) { r.With(limits.PerPerson("test", 0.1)).Get("/limited", ok) })
	require.Equal(t, http.StatusOK, get(h, "/limited", as("alice")).Code)
	for range 100 {
		require.Equal(t, http.StatusTooManyRequests, get(h, "/limited", as("alice")).Code)
	}
	clock.SetTime(time.Unix(1_010, 0))
	require.Equal(t, http.StatusOK, get(h, "/limited", as("alice")).Code)
}

func TestWritesPerPerson_letsReadsPass(t *testing.T) {
	t.Parallel()
	limits, _, registry := newLimits(t)
	h := routes(func(r chi.Router) {
		r.Use(limits.WritesPerPerson("writes", 0.2))
		r.HandleFunc("/things", ok)
		r.Post("/api/credentials", ok)
	})
	for range 2 {
		require.Equal(t, http.StatusOK, do(h, http.MethodPost, "/things", as("alice")).Code)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		require.Equal(t, http.StatusTooManyRequests, do(h, method, "/things", as("alice")).Code, method)
	}
	requireRefused(t, registry, "writes", 4)
	require.Equal(t, http.StatusOK, get(h, "/things", as("alice")).Code)
	require.Equal(t, http.StatusOK, do(h, http.MethodPost, "/api/credentials", as("alice")).Code, "it stores nothing")
	require.Equal(t, http.StatusOK, do(h, http.MethodPost, "/things", as("bob")).Code)
}

func TestPerPerson_hasBoundedMemory(t *testing.T) {
	t.Parallel()
	limits, _, _ := newLimits(t)
	h := routes(func(r chi.Router) { r.With(limits.PerPerson("test", 0.1)).Get("/limited", ok) })
	require.Equal(t, http.StatusOK, get(h, "/limited", as("first")).Code)
	require.Equal(t, http.StatusTooManyRequests, get(h, "/limited", as("first")).Code)
	for i := range 10_000 {
		require.Equal(t, http.StatusOK, get(h, "/limited", as(fmt.Sprintf("p%d", i))).Code)
	}
	require.Equal(t, http.StatusOK, get(h, "/limited", as("first")).Code, "the least recently seen person is forgotten")
	require.Equal(t, http.StatusTooManyRequests, get(h, "/limited", as("p9999")).Code)
}
