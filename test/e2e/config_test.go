package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

func TestCheck_readsFileAndEnvironmentAndTellsByItsExitCode(t *testing.T) {
	t.Parallel()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	dir := t.TempDir()
	file, tokens := filepath.Join(dir, "hub.yaml"), filepath.Join(dir, "tokens.csv")
	require.NoError(t, framework.WriteTokens(tokens))
	const head = "apiVersion: config.kedge.faros.sh/v1alpha1\nkind: HubConfiguration\n"
	for name, c := range map[string]struct {
		file, environment string
		code              int
		want              string
	}{
		"a hub that can serve": {"token-file: " + tokens, "KEDGE_HUB_SIGN_UPS=3", 0, "[+]token-file ok"},
		"an unusable issuer":   {"oidc-client-id: kedge", "KEDGE_HUB_OIDC_ISSUER_URL=https://127.0.0.1:1", 1, "[-]oidc failed: "},
		"an unknown key":       {"token-fil: x", "", 2, "the nearest is token-file"},
		"an invalid flag":      {"registration: ajar", "", 2, "--registration: "},
		"an invalid variable":  {"", "KEDGE_HUB_SIGN_UP=3", 2, "is it KEDGE_HUB_SIGN_UPS?"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(head+c.file+"\n"), 0o600))
		cmd := exec.CommandContext(t.Context(), program, "check", "--data-dir", dir)
		cmd.Env = append(os.Environ(), "KEDGE_HUB_CONFIG="+file, c.environment)
		out, err := cmd.CombinedOutput()
		require.Contains(t, string(out), c.want, name)
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s: %v: %s", name, err, out)
	}
}
