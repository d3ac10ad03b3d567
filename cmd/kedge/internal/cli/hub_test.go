package cli_test

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	orgPath = "/api/orgs/" + orgUUID
	wsPath  = orgPath + "/workspaces/" + wsUUID
)

// call is a request as it came to the hub.
type call struct{ query, org, workspace, body string }

// record answers a route, and keeps what comes.
func (b *bed) record(t *testing.T, route string, code int, body string) *[]call {
	t.Helper()
	calls := &[]call{}
	b.mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if len(raw) > 0 {
			assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		}
		*calls = append(*calls, call{r.URL.RawQuery, r.Header.Get("X-Kedge-Org"), r.Header.Get("X-Kedge-Workspace"), string(raw)})
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
	return calls
}

// inWorkspace logs in, and chooses an organization and a workspace.
func (b *bed) inWorkspace(t *testing.T) {
	t.Helper()
	b.login(t)
	b.answer("GET /api/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME","role":"admin","phase":"Ready","createdAt":"2026-11-01T00:00:00Z"}]}`)
	b.answer("GET "+orgPath+"/workspaces", http.StatusOK, `{"items":[{"uuid":"`+wsUUID+`","displayName":"Web","role":"admin","phase":"Ready"}]}`)
	b.inWorkspaceAgain(t, "Web")
}

// inWorkspaceAgain chooses them anew.
func (b *bed) inWorkspaceAgain(t *testing.T, workspace string) {
	t.Helper()
	for _, args := range [][]string{{"orgs", "use", "ACME"}, {"workspaces", "use", workspace}} {
		code, _, errOut := b.run(t, args...)
		require.Zero(t, code, errOut)
	}
}

// chosen is what is kept of the choice.
func (b *bed) chosen(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(b.file(".config/kedge/config.json"))
	require.NoError(t, err)
	return string(raw)
}
