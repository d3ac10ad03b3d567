package cli_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

func TestSudo_runsTheProgramWithTheSudoGroup(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath, http.StatusOK, `{"uuid":"`+orgUUID+`","displayName":"ACME"}`)
	b.answer("GET "+wsPath, http.StatusOK, `{"uuid":"`+wsUUID+`","displayName":"Web","clusterID":"abc"}`)
	b.answer("GET "+wsPath+"/kubeconfig", http.StatusOK, b.kubeconfig(wsUUID))
	asked := b.record(t, "POST /clusters/abc/apis/authentication.k8s.io/v1/selfsubjectreviews", http.StatusCreated, `{"status":{"userInfo":{"username":"kedge:alice"}}}`)
	file := ""
	b.program = func(p cli.Program) (int, error) {
		require.Equal(t, "kubectl", p.Name)
		require.Equal(t, []string{"get", "secrets", "-o", "name"}, p.Args)
		require.Len(t, p.Env, 2)
		require.Equal(t, "KEDGE_CONFIG="+b.file(".config/kedge/config.json"), p.Env[1])
		file = strings.TrimPrefix(p.Env[0], "KUBECONFIG=")
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(raw), secret)
		var c clientcmdv1.Config
		require.NoError(t, yaml.Unmarshal(raw, &c))
		require.Equal(t, "ACME/Web", c.CurrentContext)
		require.Equal(t, "kedge:alice", c.AuthInfos[0].AuthInfo.Impersonate)
		require.Equal(t, []string{"kedge:workspace:" + wsUUID + ":sudo"}, c.AuthInfos[0].AuthInfo.ImpersonateGroups)
		require.NotNil(t, c.AuthInfos[0].AuthInfo.Exec)
		return 3, nil
	}
	code, _, errOut := b.run(t, "sudo", "--", "kubectl", "get", "secrets", "-o", "name")
	require.Equal(t, 3, code, errOut)
	require.Empty(t, errOut, "the program has said what is wrong")
	require.Len(t, *asked, 1)
	_, err := os.Stat(file)
	require.ErrorIs(t, err, os.ErrNotExist)

	b.program = func(cli.Program) (int, error) { return 0, errors.New("not found") }
	code, _, errOut = b.run(t, "sudo", "--workspace", "Web", "--", "kubectl", "get", "secrets", "-o", "name")
	require.Equal(t, 1, code)
	require.Equal(t, "kedge: run kubectl: not found\n", errOut)
	for _, args := range []string{"sudo", "sudo kubectl get ns", "sudo --"} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, args)
		require.Contains(t, errOut, "after --")
	}
}

func TestRun_returnsTheExitCodeOfAProgram(t *testing.T) {
	t.Parallel()
	code, err := cli.Run(t.Context(), cli.Program{Name: "sh", Args: []string{"-c", `exit "$WANTED"`}, Env: []string{"WANTED=7"}})
	require.NoError(t, err)
	require.Equal(t, 7, code)
	code, err = cli.Run(t.Context(), cli.Program{Name: "true"})
	require.NoError(t, err)
	require.Zero(t, code)
	_, err = cli.Run(t.Context(), cli.Program{Name: "there-is-no-such-program"})
	require.Error(t, err)
}
