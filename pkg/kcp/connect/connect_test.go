package connect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// kubeconfig writes a kubeconfig like kcp's own, to which it applies change, and a token
// in a file beside it.
func kubeconfig(t *testing.T, change func(*clientcmdapi.Config)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	config := clientcmdapi.Config{
		CurrentContext: "root",
		Contexts: map[string]*clientcmdapi.Context{
			"root": {Cluster: "root", AuthInfo: "admin"}, ShardAdmin: {Cluster: "base", AuthInfo: "shard"},
		},
		Clusters: map[string]*clientcmdapi.Cluster{
			"root": {Server: "https://kcp.example:6443/clusters/root"}, "base": {Server: "https://kcp.example:6443"},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"admin": {TokenFile: "token"}, "shard": {Token: "of-the-shard"}},
	}
	if change != nil {
		change(&config)
	}
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte("of-the-admin"), 0o600))
	require.NoError(t, clientcmd.WriteToFile(config, file))
	return file
}

func TestKubeconfig_namesTheServerAndIsValidated(t *testing.T) {
	t.Parallel()
	config, err := externalConfig(t.Context(), kubeconfig(t, nil))
	require.NoError(t, err)
	require.Equal(t, "https://kcp.example:6443", config.Host)
	require.Empty(t, config.BearerToken, "the transport adds the token")
	require.NotNil(t, config.WrapTransport)
	for name, change := range map[string]func(*clientcmdapi.Config){
		"insecure-skip-tls-verify": func(c *clientcmdapi.Config) { c.Clusters["root"].InsecureSkipTLSVerify = true },
		"is not an https URL":      func(c *clientcmdapi.Config) { c.Clusters["root"].Server = "http://kcp.example" },
		"no such file":             func(c *clientcmdapi.Config) { c.AuthInfos["admin"].TokenFile = "nowhere" },
		"context was not found":    func(c *clientcmdapi.Config) { c.CurrentContext = "other" },
	} {
		_, err := externalConfig(t.Context(), kubeconfig(t, change))
		require.ErrorContains(t, err, "--kcp-kubeconfig: ")
		require.ErrorContains(t, err, name)
	}
}

func TestShardAdmin_ofAnotherServerIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*clientcmdapi.Config)
		own    bool
	}{
		"the same server": {nil, true},
		"another server":  {func(c *clientcmdapi.Config) { c.Clusters["base"].Server = "https://other.example" }, false},
		"nobody":          {func(c *clientcmdapi.Config) { delete(c.Contexts, ShardAdmin) }, false},
		"no credential":   {func(c *clientcmdapi.Config) { c.AuthInfos["shard"].Token = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := kubeconfig(t, c.change)
			config, err := externalConfig(t.Context(), file)
			require.NoError(t, err)
			clients, err := kcp.NewClients(config, prometheus.NewRegistry())
			require.NoError(t, err)
			closer, err := ShardAdminClients(t.Context(), Options{Kubeconfig: file}, clients, config.Host)
			require.NoError(t, err)
			require.Equal(t, c.own, closer != clients)
		})
	}
}

func TestKubeconfig_baseURLHasNoClusterPath(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"https://kcp:6443": "https://kcp:6443", "https://kcp:6443/clusters/root": "https://kcp:6443",
		"https://front.example.com/base/clusters/root:x": "https://front.example.com/base",
	} {
		got, err := baseURL(server)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := baseURL("http://kcp:6443")
	require.Error(t, err)
}
