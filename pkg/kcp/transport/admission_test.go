package transport

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// passed answers every request.
type passed struct{}

func (passed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAdmission_refusesCreationsOnly(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	rt := admit(func() error { return full })(passed{})
	const at = "https://kcp/clusters/c"
	for name, c := range map[string]struct {
		method, path, content string
		refused               bool
	}{
		"a create":                {method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/clusterroles", refused: true},
		"a server-side apply":     {method: http.MethodPatch, path: "/api/v1/namespaces/a", content: "application/apply-patch+yaml", refused: true},
		"a merge patch":           {method: http.MethodPatch, path: "/api/v1/namespaces/a", content: "application/merge-patch+json"},
		"a replacement":           {method: http.MethodPut, path: "/api/v1/namespaces/a"},
		"a deletion":              {method: http.MethodDelete, path: "/api/v1/namespaces/a"},
		"a read":                  {method: http.MethodGet, path: "/api/v1/namespaces/a"},
		"an access review":        {method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/subjectaccessreviews"},
		"a token review":          {method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/tokenreviews"},
		"a group of another name": {method: http.MethodPost, path: "/apis/my-authorization.k8s.io/v1/things", refused: true},
	} {
		r := httptest.NewRequest(c.method, at+c.path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", c.content)
		response, err := rt.RoundTrip(r)
		if c.refused {
			require.ErrorIs(t, err, full, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, response.Body.Close())
	}
}

func TestAdmission_passesWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	response, err := admit(func() error { return nil })(passed{}).RoundTrip(httptest.NewRequest(http.MethodPost, "https://kcp/api/v1/namespaces", http.NoBody))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}
