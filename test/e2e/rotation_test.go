package e2e

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The embedded kcp accepts the tokens that the hub accepts, and follows the file with it.
func TestTokenFile_isFollowedByTheEmbeddedKCP(t *testing.T) {
	t.Parallel()
	h := startHub(t, t.TempDir(), freePort(t))
	org := h.CreateOrg(t, "alice", "ACME")
	cluster := h.CreateWorkspace(t, "alice", org, "own").Text("clusterID")
	entering := func(name string) framework.Call {
		return framework.Call{As: name, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}
	}
	h.Do(t, entering("newcomer"), http.StatusUnauthorized)
	require.NoError(t, framework.WriteTokens(filepath.Join(h.dir, "tokens.csv"), "newcomer"))
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(framework.Call{As: "newcomer", Method: http.MethodGet, Path: "/api/users/me"})
		if err != nil {
			return err
		}
		return framework.Equal(http.StatusOK, a.Code)
	})
	h.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("newcomer", "admin")), http.StatusCreated)
	h.Do(t, entering("newcomer"), http.StatusOK)
}
