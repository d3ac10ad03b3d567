package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

const twinWS = "50760342-89c9-4163-90c9-a5809b1cfe3b"

// kubeconfig is the hub's for a workspace.
func (b *bed) kubeconfig(workspace string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"kedge-%[2]s",
		"clusters":[{"name":"kedge-%[2]s","cluster":{"server":"%[1]s/clusters/%[2]s"}}],
		"contexts":[{"name":"kedge-%[2]s","context":{"cluster":"kedge-%[2]s","user":"kedge-%[2]s","namespace":"default"}}],
		"users":[{"name":"kedge-%[2]s","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"kedge",
			"args":["credential","--server","%[1]s"],"env":null,"provideClusterInfo":true,"interactiveMode":"Never"}}}]}`, b.URL, workspace)
}

// withWorkspaces has two workspaces of one name, and one that is not ready.
func (b *bed) withWorkspaces(t *testing.T) (profile string) {
	t.Helper()
	b.login(t)
	b.answer("GET /api/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
	b.answer("GET "+orgPath, http.StatusOK, `{"uuid":"`+orgUUID+`","displayName":"ACME"}`)
	b.answer("GET "+orgPath+"/workspaces", http.StatusOK, `{"items":[{"uuid":"`+wsUUID+`","displayName":"Web"},{"uuid":"`+twinWS+`","displayName":"Web"},
		{"uuid":"21116e04-a5eb-42b1-a215-b3886ae35ee2","displayName":"Gone"}]}`)
	b.answer("GET "+wsPath, http.StatusOK, `{"uuid":"`+wsUUID+`","displayName":"Web"}`)
	b.answer("GET "+wsPath+"/kubeconfig", http.StatusOK, b.kubeconfig(wsUUID))
	b.answer("GET "+orgPath+"/workspaces/"+twinWS+"/kubeconfig", http.StatusOK, b.kubeconfig(twinWS))
	b.answer("GET "+orgPath+"/workspaces/21116e04-a5eb-42b1-a215-b3886ae35ee2/kubeconfig", http.StatusNotFound, `{"kind":"Status","message":"it is deleted"}`)
	return strings.ReplaceAll(strings.TrimPrefix(b.URL, "https://"), ":", "-")
}

func TestKubeconfig_namesProfileAndServerAndHoldsNoToken(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	profile := b.withWorkspaces(t)
	code, out, errOut := b.run(t, "kubeconfig", "--org", orgUUID, "--workspace", wsUUID)
	require.Zero(t, code, errOut)
	require.NotContains(t, out, secret)
	c, err := clientcmd.Load([]byte(out))
	require.NoError(t, err)
	require.Equal(t, "ACME/Web", c.CurrentContext)
	require.Equal(t, []string{"credential", "--server", b.URL, "--profile", profile}, c.AuthInfos["ACME/Web"].Exec.Args)
	require.Equal(t, "default", c.Contexts["ACME/Web"].Namespace)
}

func TestKubeconfig_allOfTheWorkspacesPrintedOrMerged(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withWorkspaces(t)
	code, out, errOut := b.run(t, "kubeconfig", "--all")
	require.Zero(t, code, errOut)
	require.Equal(t, `kedge: "Gone" (21116e04-a5eb-42b1-a215-b3886ae35ee2) is left out: it is deleted`+"\n", errOut)
	c, err := clientcmd.Load([]byte(out))
	require.NoError(t, err)
	require.Empty(t, c.CurrentContext)
	require.Len(t, c.Contexts, 2)
	require.Equal(t, b.URL+"/clusters/"+twinWS, c.Clusters["ACME/Web-50760342"].Server)

	path := b.file(".kube/config")
	code, out, errOut = b.run(t, "kubeconfig", "--all", "--merge")
	require.Zero(t, code, errOut)
	require.Equal(t, "Context ACME/Web-9acbf567 is in "+path+".\nContext ACME/Web-50760342 is in "+path+".\n", out)
	code, _, errOut = b.run(t, "kubeconfig", "--all", "--merge", "--use")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "kedge: --use: no workspace is chosen among these")
	b.inWorkspaceAgain(t, wsUUID)
	code, out, errOut = b.run(t, "kubeconfig", "--merge", "--use")
	require.Zero(t, code, errOut)
	require.Equal(t, "Context ACME/Web-9acbf567 is in "+path+" and is the current one.\n", out)
	c, err = clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	require.Equal(t, "ACME/Web-9acbf567", c.CurrentContext)
	require.Len(t, c.Contexts, 2)
}

func TestKubeconfig_mergesIntoTheFirstFileOfTheVariable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withWorkspaces(t)
	b.env["KUBECONFIG"] = b.file("a") + ":" + b.file("b")
	code, _, errOut := b.run(t, "kubeconfig", "--org", orgUUID, "--workspace", wsUUID, "--merge")
	require.Zero(t, code, errOut)
	require.FileExists(t, b.file("a"))
	require.NoFileExists(t, b.file("b"))
	_, err := os.Stat(b.file(".kube"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestKubeconfig_refusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withWorkspaces(t)
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"--use":              {2, "--use: give it with --merge"},
		"--all --org x":      {1, "there is no organization with the UUID or the name \"x\""},
		"--merge --file x":   {2, "give one of --file and --merge only"},
		"--all --workspace=": {2, "give one of --workspace and --all only"},
		"--all --org 21116e04-a5eb-42b1-a215-b3886ae35ee2": {1, "there is no organization"},
		"": {1, "no organization is chosen"},
	} {
		code, out, errOut := b.run(t, append([]string{"kubeconfig"}, strings.Fields(args)...)...)
		require.Equal(t, c.code, code, args+errOut)
		require.Empty(t, out)
		require.Contains(t, errOut, c.says)
	}
}
