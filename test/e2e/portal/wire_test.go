package portal

import (
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// wire reads the headers of the hub's own answers: what no proxy, middleware or server in front
// of the handlers may lose.
func wire(t *testing.T, s *scene, alice *person) {
	ask := func(path, as string) framework.Answer {
		a, err := s.client.Uncompared().Try(framework.Call{As: as, Method: http.MethodGet, Path: path, Header: http.Header{"Accept": {"text/html, */*"}}})
		require.NoError(t, err)
		return a
	}
	paths := []string{"/", "/ui", "/ui/", "/ui/me", alice.path()}
	require.NoError(t, fs.WalkDir(os.DirFS("../../../pkg/portal/static"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, "/ui/"+name)
		}
		return err
	}))
	for _, path := range paths {
		a := ask(path, "")
		require.Equal(t, http.StatusOK, a.Code, path)
		require.NotEmpty(t, a.Header.Get("X-Request-Id"), path)
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
				"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
			"Strict-Transport-Security": "max-age=31536000", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
		} {
			require.Equal(t, []string{value}, a.Header[name], "%s of %s", name, path)
		}
		require.Empty(t, a.Header["Set-Cookie"], path)
	}
	require.Equal(t, http.StatusNotFound, ask("/ui/nothing.js", "").Code)

	// What a tenant stores is no page of this origin, whether kcp or the hub answers.
	org, ws, _ := strings.Cut(strings.TrimPrefix(alice.path(), "/ui/orgs/"), "/workspaces/")
	ws, _, _ = strings.Cut(ws, "/")
	workspace := s.client.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + org + "/workspaces/" + ws, Org: org, Workspace: ws}, http.StatusOK)
	stored := "/clusters/" + workspace.Text("clusterID") + "/api/v1/namespaces/default/configmaps"
	s.client.Do(t, framework.Call{As: "alice", Method: http.MethodPost, Path: stored, Body: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "page"}, "data": map[string]string{"page": "<script>alert(1)</script>"},
	}}, http.StatusCreated)
	for _, c := range []struct {
		path, as string
		code     int
	}{
		{stored + "/page", "alice", http.StatusOK},
		{stored + "/missing", "alice", http.StatusNotFound},
		{stored + "/page", "", http.StatusUnauthorized},
		{stored + "/page", "bob", http.StatusForbidden},
		{"/clusters/nothing", "alice", http.StatusForbidden},
	} {
		a := ask(c.path, c.as)
		require.Equal(t, c.code, a.Code, "%s as %q: %s", c.path, c.as, a.Raw)
		require.Equal(t, []string{"sandbox; default-src 'none'"}, a.Header["Content-Security-Policy"], c.path)
		require.Equal(t, []string{"nosniff"}, a.Header["X-Content-Type-Options"], c.path)
	}
}
