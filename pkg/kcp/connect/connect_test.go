package connect

import (
	"os"
	"path/filepath"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
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

// shard is a Shard with this base URL.
func shard(name, base string) *kcpcorev1alpha1.Shard {
	return &kcpcorev1alpha1.Shard{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kcpcorev1alpha1.ShardSpec{BaseURL: base}}
}

func TestShardAdmin_ofAnotherServerIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*clientcmdapi.Config)
		own     bool
		sharded bool
	}{
		"the same server":         {nil, true, false},
		"a shard behind a proxy":  {func(c *clientcmdapi.Config) { c.Clusters["base"].Server = "https://shard.example/" }, true, true},
		"another server":          {func(c *clientcmdapi.Config) { c.Clusters["base"].Server = "https://other.example" }, false, false},
		"another port of a shard": {func(c *clientcmdapi.Config) { c.Clusters["base"].Server = "https://shard.example:6444" }, false, false},
		"nobody":                  {func(c *clientcmdapi.Config) { delete(c.Contexts, ShardAdmin) }, false, false},
		"no credential":           {func(c *clientcmdapi.Config) { c.AuthInfos["shard"].Token = "" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := kcpfake.New(t)
			server.Put("root", shard("root", "https://shard.example/"))
			clients := server.Clients()
			file := kubeconfig(t, func(config *clientcmdapi.Config) {
				config.Clusters["base"].Server = server.URL()
				if c.change != nil {
					c.change(config)
				}
			})
			admin, sharded, err := ShardAdminClients(t.Context(), Options{Kubeconfig: file}, clients)
			require.NoError(t, err)
			require.Equal(t, c.own, admin != clients)
			require.Equal(t, c.sharded, sharded)
			if sharded {
				require.Equal(t, "https://shard.example/clusters/c", admin.ClusterURL("c"))
			}
		})
	}
}

func TestShardAdmin_isNotUsedWithoutTheRightToListShards(t *testing.T) {
	t.Parallel()
	server := kcpfake.New(t)
	file := kubeconfig(t, nil)
	for _, c := range []struct {
		fails error
		want  bool
	}{
		{apierrors.NewForbidden(kcpcorev1alpha1.Resource("shards"), "", nil), true},
		{apierrors.NewServiceUnavailable("it starts"), false},
	} {
		server.FailBefore(func(kcpfake.Request) error { return c.fails })
		clients := server.Clients()
		admin, sharded, err := ShardAdminClients(t.Context(), Options{Kubeconfig: file}, clients)
		require.Equal(t, c.want, err == nil, "what may pass is not taken for a lack of rights: %v", err)
		require.Equal(t, c.want, admin == clients)
		require.False(t, sharded)
	}
}

func TestLocate_findsTheShardOfALogicalCluster(t *testing.T) {
	t.Parallel()
	front, first, second := kcpfake.New(t), kcpfake.New(t), kcpfake.New(t)
	front.Put("root", shard("root", first.URL()))
	front.Put("root", shard("two", second.URL()))
	second.Put("there", &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}})
	locate := NewLocate(front.Clients(), first.Clients())
	base, err := locate(t.Context(), "there")
	require.NoError(t, err)
	require.Equal(t, second.URL(), base)
	_, err = locate(t.Context(), "gone")
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	first.FailBefore(func(kcpfake.Request) error { return apierrors.NewServiceUnavailable("it is down") })
	base, err = locate(t.Context(), "there")
	require.NoError(t, err, "the shard of another logical cluster is down")
	require.Equal(t, second.URL(), base)
	_, err = locate(t.Context(), "gone")
	require.True(t, apierrors.IsServiceUnavailable(err), "it may lie on the shard that is down: %v", err)
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

func TestRenewShardAdmin_readsItsOwnContext(t *testing.T) {
	t.Parallel()
	server := kcpfake.New(t)
	server.Put("root", shard("root", "https://shard.example"))
	var contexts *clientcmdapi.Config
	file := kubeconfig(t, func(c *clientcmdapi.Config) {
		contexts = c
		c.Clusters["root"].Server, c.Clusters["base"].Server = server.URL(), "https://shard.example"
	})
	admin, _, err := ShardAdminClients(t.Context(), Options{Kubeconfig: file}, server.Clients())
	require.NoError(t, err)
	require.NoError(t, RenewShardAdmin(Options{Kubeconfig: file}, admin))
	contexts.Clusters["base"].CertificateAuthorityData = []byte("no certificate")
	require.NoError(t, clientcmd.WriteToFile(*contexts, file))
	require.ErrorContains(t, RenewShardAdmin(Options{Kubeconfig: file}, admin), "certificate")
	contexts.Clusters["base"].Server = "https://other.example"
	require.NoError(t, clientcmd.WriteToFile(*contexts, file))
	require.ErrorContains(t, RenewShardAdmin(Options{Kubeconfig: file}, admin), "names another server")
	delete(contexts.Contexts, ShardAdmin)
	require.NoError(t, clientcmd.WriteToFile(*contexts, file))
	require.ErrorContains(t, RenewShardAdmin(Options{Kubeconfig: file}, admin), ShardAdmin)
}
