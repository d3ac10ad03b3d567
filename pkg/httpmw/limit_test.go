package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
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

// routes returns routes behind Authenticate. The token is the name of the caller; a token that
// begins with "ops-" has the group ops.
func routes(mount func(chi.Router)) http.Handler {
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		id := &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}
		if len(token) > 4 && token[:4] == "ops-" {
			id.Groups = []string{"others", "ops"}
		}
		return id, true, nil
	})
	r := chi.NewRouter()
	r.Use(httpmw.Authenticate(tokens, everybody{}, nil, httpmw.Admins{Users: []string{"admin"}, Groups: []string{"ops"}}))
	mount(r)
	return r
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func TestLimitRate_saysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000, 0))
	h := routes(func(r chi.Router) {
		r.With(httpmw.LimitRate(2, 3, clock)).Get("/limited", ok)
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
		require.Equal(t, "1", refused.Header().Get("Retry-After"), "half a second, rounded up")
		require.Contains(t, refused.Body.String(), `"reason":"TooManyRequests"`)
	}
	burst("alice", 3)
	burst("bob", 3)
	require.Equal(t, http.StatusOK, get(h, "/free", as("alice")).Code)
	clock.SetTime(time.Unix(1_000, 499_000_000))
	require.Equal(t, http.StatusTooManyRequests, ask("alice"))
	clock.SetTime(time.Unix(1_001, 0))
	burst("alice", 2)
	clock.SetTime(time.Unix(2_000, 0))
	burst("alice", 3)
}

// A refused request costs nothing: who keeps asking gets in as soon as who waits.
func TestLimitRate_doesNotCountRefusedRequests(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000, 0))
	h := routes(func(r chi.Router) { r.With(httpmw.LimitRate(1, 1, clock)).Get("/limited", ok) })
	require.Equal(t, http.StatusOK, get(h, "/limited", as("alice")).Code)
	for range 100 {
		require.Equal(t, http.StatusTooManyRequests, get(h, "/limited", as("alice")).Code)
	}
	clock.SetTime(time.Unix(1_001, 0))
	require.Equal(t, http.StatusOK, get(h, "/limited", as("alice")).Code)
}

func TestLimitRate_hasBoundedMemory(t *testing.T) {
	t.Parallel()
	limit := httpmw.LimitRate(1, 1, clocktesting.NewFakePassiveClock(time.Unix(1_000, 0)))
	h := routes(func(r chi.Router) { r.With(limit).Get("/limited", ok) })
	require.Equal(t, http.StatusOK, get(h, "/limited", as("first")).Code)
	require.Equal(t, http.StatusTooManyRequests, get(h, "/limited", as("first")).Code)
	for i := range 10_000 {
		require.Equal(t, http.StatusOK, get(h, "/limited", as(fmt.Sprintf("p%d", i))).Code)
	}
	require.Equal(t, http.StatusOK, get(h, "/limited", as("first")).Code, "forgotten: who was not seen for longest")
	require.Equal(t, http.StatusTooManyRequests, get(h, "/limited", as("p9999")).Code)
}
