package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/framework"
)

// restores runs kedge-hub restore, and returns what it printed.
func restores(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), program, append([]string{"restore"}, args...)...).CombinedOutput()
	return string(out), err
}

// reportOf reads what a restored hub did before it served.
func reportOf(t *testing.T, h *hub) (r restore.Report) {
	t.Helper()
	raw, err := os.ReadFile(restore.ReportFile(h.dir))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &r))
	return r
}

// enters returns the code of a look into a cluster.
func enters(h *hub, token, cluster string) (int, error) {
	a, err := h.Try(framework.Call{Token: token, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps?limit=1"})
	return a.Code, err
}

// asBob returns what has to be refused to a person who was removed.
func asBob(s *scene, cluster string) []framework.Call {
	return []framework.Call{
		{As: "bob", Method: http.MethodGet, Path: "/api/orgs/" + s.org, Org: s.org},
		{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"},
	}
}

// TestRestore_givesNoRightBack loses the disk of a hub under load, and starts another one from the backup and the audit
// files of the lost one. That one is killed while it is in restore mode.
func TestRestore_givesNoRightBack(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	h := startHub(t, t.TempDir(), port, "--personal-orgs=false")
	l := newLosses(t, h)
	l.load(h)
	saved := backUp(t, h)
	l.lose(t, h)
	h.Kill()
	l.loading.Wait()
	audit := filepath.Join(t.TempDir(), "audit")
	require.NoError(t, os.Rename(filepath.Join(h.dir, "audit"), audit))
	require.NoError(t, os.RemoveAll(h.dir))

	// Without the audit files nobody knows that bob was removed.
	blind := filepath.Join(t.TempDir(), "blind")
	out, err := restores(t, saved, "--data-dir", blind)
	require.Error(t, err)
	require.Contains(t, out, "--accept-lost-history")
	refused := launch(t, blind, freePort(t))
	select {
	case <-refused.Ended():
		require.Contains(t, refused.Output.String(), "--accept-lost-history")
	case <-time.After(framework.Long):
		require.Fail(t, "a hub serves that does not know what ended", "%s", refused.Output)
	}

	dir := filepath.Join(t.TempDir(), "restored")
	out, err = restores(t, saved, "--data-dir", dir, "--replay", audit)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "its audit log ends at event")
	out, err = restores(t, saved, "--data-dir", dir, "--replay", audit)
	require.Error(t, err, "%s", out)

	client, err := framework.NewClient(fmt.Sprintf("https://127.0.0.1:%d", port), filepath.Join(dir, "tls", "ca.crt"))
	require.NoError(t, err)
	end := l.knocks(t, client, func(framework.Answer) {})
	flags := []string{"--personal-orgs=false", "--deletion-grace", "1s", "--expired-workspace-grace", "1s"}
	killed := launch(t, dir, port, flags...)
	framework.Eventually(t, framework.Long, func() error {
		_, err := os.Stat(restore.ReportFile(dir))
		return err
	})
	killed.Kill()
	h = startHub(t, dir, port, flags...)
	l.stayLost(t, h)
	end()
	l.reported(t, reportOf(t, h))
	verified(t, h.dir)
	l.released(t, h, func() {
		out, err := restores(t, "--release", "--data-dir", h.dir)
		require.NoError(t, err, "%s", out)
	})
	verified(t, h.dir)
}
