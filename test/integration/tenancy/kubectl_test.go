package tenancy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// What kubectl does every day meets no limit, in a Workspace that nobody has measured yet: an installation with 20
// definitions and their objects at once, 500 objects, the same ones again, and a watch meanwhile.
func TestKubectl_meetsNoLimit(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot())
	cluster := hub.CreateWorkspace(t, "alice", hub.CreateOrg(t, "alice", "ACME"), "Shop").Text("clusterID")
	// kubectl repeats ten times what waits for the admission policy of a new Workspace. A busy machine takes longer.
	hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + "/apis/rbac.authorization.k8s.io/v1/clusterroles", Body: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "first"},
	}}, http.StatusCreated)
	dir := t.TempDir()
	manifest := func(name string, items []any) string {
		raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		return path
	}
	var definitions, things, objects []any
	for n := range 20 {
		definitions = append(definitions, defining(cluster, n).Body)
		things = append(things, map[string]any{"apiVersion": "example.org/v1", "kind": fmt.Sprintf("Thing%d", n), "metadata": map[string]any{"name": "one"}})
	}
	for n := range 500 {
		objects = append(objects, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("object-%d", n), "namespace": "default"},
			"data": map[string]any{"text": strings.Repeat("x", 1000)},
		})
	}
	works := func(args ...string) string {
		t.Helper()
		out, errOut, err := hub.Kubectl(t, "alice", cluster, args...)
		require.NoError(t, err, errOut)
		require.NotContains(t, errOut, "throttl")
		return out
	}
	require.Equal(t, 20, strings.Count(works("apply", "-f", manifest("definitions.json", definitions)), "created"))
	works("wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	require.Equal(t, 20, strings.Count(works("apply", "-f", manifest("things.json", things)), "created"))
	watched := make(chan string, 1)
	go func() {
		out, errOut, _ := hub.Kubectl(t, "alice", cluster, "get", "configmaps", "-A", "-w", "--request-timeout", "20s")
		watched <- out + errOut
	}()
	path := manifest("objects.json", objects)
	require.Equal(t, 500, strings.Count(works("apply", "-f", path), "created"))
	require.Equal(t, 500, strings.Count(works("apply", "--server-side", "--force-conflicts", "-f", path), "serverside-applied"))
	require.Equal(t, 500, strings.Count(works("get", "configmaps", "-n", "default", "-o", "name"), "object-"))
	seen := <-watched
	require.Contains(t, seen, "object-0")
	for _, refusal := range []string{"stores", "measured", "Too Many"} {
		require.NotContains(t, seen, refusal)
	}
	// kubectl tries again by itself what a limit refuses, and says nothing of it.
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusInsufficientStorage} {
			require.Empty(t, metric(t, hub, fmt.Sprintf(`kedge_http_requests_total{code="%d",method="%s",route="/clusters/*"}`, code, method)))
		}
	}
}
