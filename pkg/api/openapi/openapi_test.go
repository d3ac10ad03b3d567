package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/openapi"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

func TestDocument_isServedAsJSONWithAnETag(t *testing.T) {
	t.Parallel()
	document, err := openapi.New("openapi: 3.1.0\ninfo: {title: hub}\n")
	require.NoError(t, err)
	ask := func(known ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody)
		r.Header["If-None-Match"] = known
		w := httptest.NewRecorder()
		document.ServeHTTP(w, r)
		return w
	}
	whole := ask()
	require.Equal(t, http.StatusOK, whole.Code)
	require.Equal(t, "application/json", whole.Header().Get("Content-Type"))
	require.JSONEq(t, `{"openapi":"3.1.0","info":{"title":"hub"}}`, whole.Body.String())
	require.True(t, json.Valid(whole.Body.Bytes()))
	etag := whole.Header().Get("ETag")
	require.Regexp(t, `^"[0-9a-f]{32}"$`, etag)
	for _, known := range [][]string{{etag}, {`"other", W/` + etag}, {`"other"`, etag}, {"*"}} {
		w := ask(known...)
		require.Equal(t, http.StatusNotModified, w.Code, known)
		require.Empty(t, w.Body.String())
		require.Equal(t, etag, w.Header().Get("ETag"))
	}
	require.Equal(t, http.StatusOK, ask(`"other"`).Code)
}

func TestNew_readsTheQueryParametersOfOperations(t *testing.T) {
	t.Parallel()
	document, err := openapi.New(`
paths:
  /api/orgs/{org}:
    parameters:
      - {$ref: "#/components/parameters/Org"}
      - {name: all, in: query}
    get:
      parameters:
        - {$ref: "#/components/parameters/Limit"}
        - {name: If-Match, in: header}
    delete: {}
  /api/orgs:
    post: {}
components:
  parameters:
    Org: {name: org, in: path}
    Limit: {name: limit, in: query}
`)
	require.NoError(t, err)
	require.Equal(t, httpapi.Parameters{
		"GET /api/orgs/{org}": {"all", "limit"}, "DELETE /api/orgs/{org}": {"all"},
	}, document.Parameters)
	_, err = openapi.New(`{paths: {/api/orgs: {get: {parameters: [{$ref: "#/components/parameters/Limit"}]}}}}`)
	require.ErrorContains(t, err, "GET /api/orgs: there is no #/components/parameters/Limit")
}

func TestNew_refusesWhatIsNoYAML(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a: [", "a: 1\na: 2\n"} {
		_, err := openapi.New(bad)
		require.ErrorContains(t, err, "the OpenAPI document")
	}
}
