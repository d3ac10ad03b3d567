package framework

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/server"
)

// config is the client config of kcp's admin, at kcp's base URL.
func (k *KCP) config(t testing.TB) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	require.NoError(t, err)
	config.Host, _, _ = strings.Cut(config.Host, "/clusters/")
	config.QPS = -1
	return config
}

// Clients returns clients of kcp's admin, which bypass every hub. They read the state in
// kcp and write as an operator does by hand.
func (k *KCP) Clients(t testing.TB) *kcp.Clients {
	t.Helper()
	clients, err := kcp.NewClients(k.config(t), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	return clients
}

// StartHubs starts hubs that share one root workspace.
func StartHubs(t testing.TB, k *KCP, root string, n int, change ...func(*server.Options)) []*Hub {
	t.Helper()
	hubs := make([]*Hub, n)
	for i := range hubs {
		hubs[i] = StartHub(t, k, root, change...)
	}
	return hubs
}

// Straight returns the HTTP status of a GET that a person sends to kcp itself. It shows
// the result of RBAC without the checks of the hub's proxy.
func (k *KCP) Straight(t testing.TB, as, cluster, path string) int {
	t.Helper()
	return k.StraightWith(t, Token(as), cluster, path)
}

// StraightWith is Straight with any bearer token.
func (k *KCP) StraightWith(t testing.TB, token, cluster, path string) int {
	t.Helper()
	config := rest.AnonymousClientConfig(k.config(t))
	config.BearerToken = token
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/clusters/%s%s", config.Host, cluster, path), http.NoBody)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// Refuses waits until kcp itself refuses a person. The RBAC caches of kcp lag behind the
// hub's.
func (k *KCP) Refuses(t testing.TB, as, cluster string) {
	t.Helper()
	Eventually(t, Long, func() error {
		return Equal(http.StatusForbidden, k.Straight(t, as, cluster, "/api/v1/namespaces"))
	})
}

// Prints compares the output of kubectl, as kcp's admin, with the last argument.
func (k *KCP) Prints(t testing.TB, cluster string, args ...string) error {
	want := args[len(args)-1]
	out, errOut, err := k.Kubectl(t, "", cluster, args[:len(args)-1]...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, errOut)
	}
	if out != want {
		return fmt.Errorf("%q instead of %q", out, want)
	}
	return nil
}

// Kubectl runs kubectl as kcp's admin against a cluster, bypassing every hub.
func (k *KCP) Kubectl(t testing.TB, stdin, cluster string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := k.config(t).Host + "/clusters/" + cluster
	return Kubectl(t, stdin, append([]string{"--kubeconfig", k.Kubeconfig, "--context", "base", "--server", server}, args...)...)
}

// KubectlAs runs kubectl as a person at a URL path of kcp, bypassing every hub.
func (k *KCP) KubectlAs(t testing.TB, as, stdin, path string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return Kubectl(t, stdin, append([]string{"--server", k.config(t).Host + path, "--insecure-skip-tls-verify", "--token", Token(as)}, args...)...)
}

// Universal creates a workspace below kcp's root, of the same type as the hub's root
// workspace.
func (k *KCP) Universal(t testing.TB) (cluster string) {
	t.Helper()
	name := strings.TrimPrefix(NewRoot(), "root:")
	workspaces := k.Clients(t).Workspaces("root")
	ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"}
	_, err := workspaces.Create(t.Context(), ws, metav1.CreateOptions{})
	require.NoError(t, err)
	Eventually(t, Long, func() error {
		ws, err := workspaces.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && ws.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseReady {
			err = fmt.Errorf("workspace %s is %s", name, ws.Status.Phase)
		}
		if err == nil {
			cluster = ws.Spec.Cluster
		}
		return err
	})
	return cluster
}

// ShardAdmin returns clients with the rights of the shard's admin. kcp allows it
// everything, in inactive logical clusters, too.
func (k *KCP) ShardAdmin(t testing.TB) *kcp.Clients {
	t.Helper()
	config, err := clientcmd.LoadFromFile(k.Kubeconfig)
	require.NoError(t, err)
	clients, err := k.Clients(t).As(&rest.Config{BearerToken: config.AuthInfos[config.Contexts["shard-base"].AuthInfo].Token})
	require.NoError(t, err)
	return clients
}
