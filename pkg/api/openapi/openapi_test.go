package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/openapi"
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

func TestNew_refusesWhatIsNoYAML(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a: [", "a: 1\na: 2\n"} {
		_, err := openapi.New(bad)
		require.ErrorContains(t, err, "the OpenAPI document")
	}
}
