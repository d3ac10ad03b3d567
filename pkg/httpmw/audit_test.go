package httpmw_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

func TestAudit_recordsWhatMayChangeSomething(t *testing.T) {
	t.Parallel()
	var changes []httpmw.Change
	h := routes(func(r chi.Router) {
		r.Use(httpmw.Audit(func(c httpmw.Change) { changes = append(changes, c) }))
		r.Route("/api", func(r chi.Router) {
			r.Post("/orgs", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/api/orgs/o")
				w.WriteHeader(http.StatusCreated)
			})
			r.Route("/orgs/{org}", func(r chi.Router) {
				r.Get("/", ok)
				r.Head("/", ok)
				r.Put("/", ok)
				r.Delete("/members/{user}", httpapi.Handle(func(http.ResponseWriter, *http.Request) error { return errs.New(errs.Conflict, "no") }))
			})
		})
	})
	for _, c := range []struct {
		method, path string
		want         *httpmw.Change
	}{
		{http.MethodPost, "/api/orgs", &httpmw.Change{Route: "/api/orgs", Params: map[string]string{}, Made: "o", Code: http.StatusCreated}},
		{http.MethodPut, "/api/orgs/o", &httpmw.Change{Route: "/api/orgs/{org}", Params: map[string]string{"org": "o"}, Code: http.StatusOK}},
		{http.MethodDelete, "/api/orgs/o/members/bob?cascade=true", &httpmw.Change{Route: "/api/orgs/{org}/members/{user}", Params: map[string]string{"org": "o", "user": "bob"}, Code: http.StatusConflict}},
		{http.MethodGet, "/api/orgs/o", nil},
		{http.MethodHead, "/api/orgs/o", nil},
	} {
		changes = nil
		do(h, c.method, c.path, as("alice"))
		if c.want == nil {
			require.Empty(t, changes, "%s %s", c.method, c.path)
			continue
		}
		require.Len(t, changes, 1, "%s %s", c.method, c.path)
		delete(changes[0].Params, "*")
		c.want.User, c.want.Method = "alice", c.method
		require.Equal(t, *c.want, changes[0])
	}
}

func TestAudit_recordsBothRequestIDs(t *testing.T) {
	t.Parallel()
	m, err := httpmw.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	var changes []httpmw.Change
	h := httpmw.Observe(zap.NewNop(), m, nil)(routes(func(r chi.Router) {
		r.Use(httpmw.Audit(func(c httpmw.Change) { changes = append(changes, c) }))
		r.Post("/things", ok)
		r.Post("/panics", func(http.ResponseWriter, *http.Request) { panic("secret-detail") })
	}))
	header := as("alice")
	header.Set("X-Request-Id", "my-id")
	w := do(h, http.MethodPost, "/things", header)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "my-id", changes[0].ClientRequest)
	require.NotEmpty(t, changes[0].Request)
	require.Equal(t, w.Header().Get("X-Request-Id"), changes[0].Request)
	require.Equal(t, http.StatusInternalServerError, do(h, http.MethodPost, "/panics", header).Code)
	require.Len(t, changes, 2, "what ends in a panic may have changed something, too")
	require.Equal(t, "/panics", changes[1].Route)
	// Without a person there is nothing that was changed.
	require.Equal(t, http.StatusUnauthorized, do(h, http.MethodPost, "/things", http.Header{}).Code)
	require.Len(t, changes, 2)
}
