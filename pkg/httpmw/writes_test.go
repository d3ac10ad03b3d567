package httpmw_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

func TestWritesAreRefusedAndReadsAreNot(t *testing.T) {
	t.Parallel()
	var full error
	h := routes(func(r chi.Router) {
		r.Use(httpmw.RefuseWrites(func() error { return full }))
		r.HandleFunc("/*", ok)
	})
	for _, c := range []struct {
		method, path string
		writes       bool
	}{
		{http.MethodGet, "/api/orgs", false},
		{http.MethodHead, "/api/orgs", false},
		{http.MethodPost, "/api/orgs", true},
		{http.MethodPatch, "/api/orgs/o", true},
		{http.MethodPut, "/api/orgs/o", true},
		{http.MethodDelete, "/api/orgs/o", true},
		{http.MethodPost, "/api/credentials", false},
		{http.MethodPost, "/api/credentials/x", true},
		{http.MethodGet, "/clusters/c/api/v1/namespaces", false},
		{http.MethodPost, "/clusters/c/api/v1/namespaces", true},
		{http.MethodPatch, "/clusters/c/apis/apps/v1/deployments/d", true},
		{http.MethodDelete, "/clusters/c/api/v1/namespaces/n", true},
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
		{http.MethodPost, "/clusters/c/apis/authentication.k8s.io/v1/selfsubjectreviews", false},
		{http.MethodDelete, "/clusters/c/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		{http.MethodPost, "/clusters/c/apis/rbac.authorization.k8s.io/v1/clusterroles", true},
		// The name of a group elsewhere in the path opens nothing.
		{http.MethodPost, "/clusters/apis/apis/authorization.k8s.io", true},
		{http.MethodPost, "/clusters/c/api/v1/namespaces/apis/authorization.k8s.io", true},
		{http.MethodPost, "/api/orgs/apis/authorization.k8s.io/x", true},
	} {
		full = errs.New(errs.Unavailable, "there is no room")
		refused := send(h, c.method, c.path, as("alice"))
		if c.writes {
			require.Equal(t, http.StatusServiceUnavailable, refused.Code, "%s %s", c.method, c.path)
			require.Contains(t, refused.Body.String(), "there is no room")
		} else {
			require.Equal(t, http.StatusOK, refused.Code, "%s %s", c.method, c.path)
		}
		full = nil
		require.Equal(t, http.StatusOK, send(h, c.method, c.path, as("alice")).Code, "%s %s", c.method, c.path)
	}
	full = errors.New("a bug")
	require.Equal(t, http.StatusInternalServerError, send(h, http.MethodPost, "/api/orgs", as("alice")).Code)
}

func send(h http.Handler, method, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
