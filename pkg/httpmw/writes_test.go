package httpmw_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

func TestRefuseWrites_letsReadsPass(t *testing.T) {
	t.Parallel()
	var full error
	h := routes(func(r chi.Router) {
		r.Use(withRequestInfo, httpmw.RefuseWrites(func() error { return full }))
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
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", false},
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io/v1/subjectaccessreviews", false},
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io/v1/namespaces/n/localsubjectaccessreviews", false},
		{http.MethodPost, "/clusters/c/apis/authentication.k8s.io/v1/tokenreviews", false},
		// A tenant can define these.
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io/v1/widgets", true},
		{http.MethodPost, "/clusters/c/apis/authentication.k8s.io/v1/namespaces/n/widgets", true},
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io/v9/subjectaccessreviews", true},
		{http.MethodPost, "/clusters/c/apis/authentication.k8s.io/v1/subjectaccessreviews", true},
		{http.MethodDelete, "/clusters/c/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		{http.MethodPost, "/clusters/c/apis/rbac.authorization.k8s.io/v1/clusterroles", true},
		// The name of a group elsewhere in the path opens nothing.
		{http.MethodPost, "/clusters/c/apis/authorization.k8s.io", true},
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

// withRequestInfo does what proxy.Shape does for a path of a cluster.
func withRequestInfo(next http.Handler) http.Handler {
	factory := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, ok := strings.CutPrefix(r.URL.Path, "/clusters/c"); ok {
			info, err := factory.NewRequestInfo(&http.Request{Method: r.Method, URL: &url.URL{Path: path}})
			if err != nil {
				panic(err)
			}
			r = r.WithContext(request.WithRequestInfo(r.Context(), info))
		}
		next.ServeHTTP(w, r)
	})
}

func send(h http.Handler, method, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
