package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
	"github.com/faroshq/kedge-hub/test/readme"
)

// The test types the README's lines about an identity provider, with Dex as the provider. It
// gives the hub free ports and the CA of Dex besides, and is the person in front of the browser.
func TestREADME_worksWithAnIdentityProvider(t *testing.T) {
	t.Parallel()
	var lines []string
	for line := range strings.Lines(readme.Block(t, "identity provider")) {
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
	}
	require.Len(t, lines, 6)

	dex, err := framework.StartDex(t.TempDir(), framework.DexOptions{})
	require.NoError(t, err)
	t.Cleanup(dex.Kill)
	c := newComputer(t, &secrets{all: map[string]bool{}})
	require.NoError(t, os.WriteFile(filepath.Join(c.home, "client-secret"), []byte(framework.HubClientSecret), 0o600))
	hub := strings.Fields(strings.NewReplacer(`"$ISSUER"`, dex.Issuer, " client-secret", " "+filepath.Join(c.home, "client-secret")).Replace(lines[0]))
	require.Equal(t, "kedge-hub", hub[0])
	require.Equal(t, "&", hub[len(hub)-1])
	data := filepath.Join(c.home, ".kedge")
	require.NoError(t, os.Mkdir(data, 0o700))
	h := comparedHub(t, data, dex.HubPort(t), append(hub[1:len(hub)-1], "--oidc-ca-file", dex.CAFile)...)

	typed := func(line string) string {
		r := c.startProgram(t, "/bin/sh", "-c", strings.ReplaceAll(line, "https://127.0.0.1:9443", h.URL))
		if strings.HasPrefix(line, "kedge login") {
			url := c.opened(t, r)
			c.finishLogin(t, r, dex.LogIn(t, framework.NewBrowser(t, h.CA, dex.CAFile), url, "alice"))
			return r.out.String()
		}
		require.NoError(t, r.wait(t), "%s\n%s%s", line, r.out, r.errOut)
		return r.out.String()
	}
	require.Contains(t, typed(lines[1]), "Logged in to "+h.URL+" as alice")
	require.Contains(t, typed(lines[2]), "My workspace")
	require.Contains(t, typed(lines[3]), "is the current one")
	require.Contains(t, typed(lines[4]), "default")
	require.Contains(t, typed(lines[5]), "cli")
}
