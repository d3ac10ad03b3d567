package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// adminTokens returns the tokens in the current kubeconfig.
func adminTokens(t *testing.T, file string) map[string]string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	tokens := map[string]string{}
	for name, user := range config.AuthInfos {
		require.NotEmpty(t, user.Token)
		tokens[name] = user.Token
	}
	return tokens
}

// kcp gives its admin a new token at every start. A hub that reads kcp's own file continues by
// itself. A hub with a copy reports that its credential is refused, and continues when the copy is
// replaced.
//
// The test restarts the kcp of the group, so it does not run in parallel with others.
func TestRestartOfKCP_needsNoRestartOfTheHub(t *testing.T) {
	before := adminTokens(t, kcp.Kubeconfig)
	stale := filepath.Join(t.TempDir(), "copy.kubeconfig")
	renew := func() {
		raw, err := os.ReadFile(kcp.Kubeconfig)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(stale, raw, 0o600))
	}
	renew()
	own := newScene(t, framework.StartHub(t, kcp, framework.NewRoot()))
	copied := newScene(t, framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.KCPKubeconfig = stale }))
	for _, s := range []*scene{own, copied} {
		s.hub.Do(t, s.calls()["create an Org"], http.StatusCreated)
	}

	kcp.Kill()
	started := false
	t.Cleanup(func() {
		if !started {
			require.NoError(t, kcp.Start())
		}
	})
	for _, s := range []*scene{own, copied} {
		framework.Eventually(t, soon+late, func() error {
			a, err := s.hub.Try(s.calls()["list Orgs"])
			return refusedFor(a, 0, err)
		})
	}
	started = true
	require.NoError(t, kcp.Start())
	after := adminTokens(t, kcp.Kubeconfig)
	require.NotEqual(t, before, after, "this is what the test is about")
	own.recovered(t)
	t.Logf("all was well %s after kcp was back", own.afterward.Round(time.Millisecond))

	framework.Eventually(t, framework.Long, func() error {
		if !strings.Contains(copied.hub.Log.String(), "kcp refuses the hub's credential") {
			return fmt.Errorf("it is not in the log:\n%s", copied.hub.Log)
		}
		return nil
	})
	a, err := copied.hub.Try(copied.calls()["create an Org"])
	require.NoError(t, refusedFor(a, 0, err))
	framework.Eventually(t, framework.Long, func() error {
		a, err := framework.Readiness(copied.hub.Metrics)
		if err == nil && !strings.Contains(string(a.Raw), "[-]kcp not ready: kcp refuses the credential of --kcp-kubeconfig") {
			err = fmt.Errorf("%d: %s", a.Code, a.Raw)
		}
		return err
	})
	renew()
	copied.recovered(t)
	t.Logf("all was well %s after the copy was renewed", copied.afterward.Round(time.Millisecond))

	// Deactivation uses the credential of kcp's shard admin.
	own.hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, own.org, own.ws, "", nil), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Equal(http.StatusForbidden, kcp.Straight(t, "alice", own.cluster, "/api/v1/namespaces"))
	})
	for _, tokens := range []map[string]string{before, after} {
		for _, token := range tokens {
			require.NotContains(t, own.hub.Log.String(), token)
			require.NotContains(t, copied.hub.Log.String(), token)
		}
	}
}
