package httpmw_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

func TestAdditions_limitTheDistinctPeopleOfAnAdder(t *testing.T) {
	t.Parallel()
	limits, clock, registry := newLimits(t)
	admit, free := limits.Additions("additions", 4), limits.Additions("off", 0)
	h := routes(func(r chi.Router) {
		r.Post("/limited/{person}", httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error { return admit(r, chi.URLParam(r, "person")) }))
		r.Post("/unlimited/{person}", httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error { return free(r, chi.URLParam(r, "person")) }))
	})
	add := func(adder, person string) int { return send(h, http.MethodPost, "/limited/"+person, as(adder)).Code }
	for _, person := range []string{"p1", "p2", "p3", "p4"} {
		require.Equal(t, http.StatusOK, add("mallory", person))
	}
	refused := send(h, http.MethodPost, "/limited/p5", as("mallory"))
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	require.Equal(t, "900", refused.Header().Get("Retry-After"))
	requireRefused(t, registry, "additions", 1)
	for range 100 {
		require.Equal(t, http.StatusOK, add("mallory", "p1"), "adding the same person again is free")
	}
	require.Equal(t, http.StatusOK, add("alice", "p5"))
	clock.SetTime(time.Unix(1_000, 0).Add(15 * time.Minute))
	require.Equal(t, http.StatusOK, add("mallory", "p5"))
	require.Equal(t, http.StatusTooManyRequests, add("mallory", "p6"))
	for _, person := range []string{"p1", "p2", "p3", "p4", "p5", "p6"} {
		require.Equal(t, http.StatusOK, send(h, http.MethodPost, "/unlimited/"+person, as("mallory")).Code)
	}
	requireRefused(t, registry, "off", 0)
}
