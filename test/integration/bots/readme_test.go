package bots

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
	"github.com/faroshq/kedge-hub/test/framework"
	"github.com/faroshq/kedge-hub/test/readme"
)

// ca is the CA of the hub.
func (c ci) ca(t testing.TB) []byte {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(c.hub.Options.DataDir, "tls", "ca.crt"))
	require.NoError(t, err)
	return ca
}

// types runs lines in a directory, as the runner of a job does, and returns what they print.
func (c ci) types(t testing.TB, dir, lines string, environment ...string) (string, error) {
	t.Helper()
	kedge, err := framework.Bin("kedge")
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "sh", "-ec", lines)
	run.Dir = dir
	run.Env = append([]string{
		"HOME=" + dir, "PATH=" + filepath.Dir(kedge) + string(os.PathListSeparator) + os.Getenv("PATH"), "HUB=" + c.audience,
	}, environment...)
	out, err := run.CombinedOutput()
	return string(out), err
}

// gitHub is GitHub's runner: it gives the job its ID token for an audience. The result is its CA and the
// environment of the job.
func (c ci) gitHub(t testing.TB, job oidctest.Claims) (ca []byte, environment []string) {
	t.Helper()
	const bearer = "of-the-runner"
	runner := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer "+bearer, r.Header.Get("Authorization"))
		assert.Equal(t, c.audience, r.URL.Query().Get("audience"))
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"count": 1, "value": c.job(job)}))
	}))
	t.Cleanup(runner.Close)
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: runner.Certificate().Raw})
	return ca, []string{"ACTIONS_ID_TOKEN_REQUEST_URL=" + runner.URL + "/token?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + bearer}
}

// runsREADME runs the lines for GitHub Actions and for GitLab CI as README.md prints them, for rules with the claims that
// it names: the number of a repository is that of the renamed one, too.
func (c ci) runsREADME(t *testing.T) {
	t.Helper()
	github, gitlab := readme.Pipelines(t)
	require.NotEmpty(t, gitlab.Variable)
	runner, asks := c.gitHub(t, oidctest.Claims{"repository": "octo/renamed"})
	for name, job := range map[string]struct {
		lines       []string
		issuer      *oidctest.Provider
		claims      map[string]string
		environment []string
	}{
		"github": {github.Script, c.idp, map[string]string{"repository_id": "74"}, asks},
		"gitlab": {gitlab.Script, c.gitlab, map[string]string{"project_id": "20"}, []string{gitlab.Variable + "=" + c.gitlabJob(c.gitlab, nil)}},
	} {
		bot, dir := c.scene.bot(t, "member"), t.TempDir()
		rule := map[string]any{"issuer": job.issuer.URL(), "claims": job.claims}
		c.hub.Do(t, c.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/trust", rule), http.StatusCreated)
		write(t, filepath.Join(dir, "manifest.json"), []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"from-`+name+`"}}`))
		// The machine of a job trusts the CA of the hub.
		system := filepath.Join(t.TempDir(), "system.crt")
		write(t, system, append(c.ca(t), runner...))
		out, err := c.types(t, dir, strings.Join(job.lines, "\n"), append(job.environment, "BOT="+bot, "SSL_CERT_FILE="+system)...)
		require.NoError(t, err, out)
		require.Contains(t, out, "as the bot "+bot)
		require.Contains(t, out, "configmap/from-"+name+" created")
		require.NotContains(t, out, "eyJ", "no token is shown")
		config, err := os.ReadFile(filepath.Join(dir, "kubeconfig"))
		require.NoError(t, err)
		require.NotContains(t, string(config), "eyJ", "nor is one in the kubeconfig")
	}
}
