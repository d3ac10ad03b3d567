package framework

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/server"
)

// config is the admin's, at kcp's base URL.
func (k *KCP) config(t testing.TB) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	require.NoError(t, err)
	config.Host, _, _ = strings.Cut(config.Host, "/clusters/")
	config.QPS = -1
	return config
}

// Clients are those of kcp's admin, past every hub: what they read is the truth,
// and what they write was done by hand.
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

// Straight is the HTTP status of a GET that a person sends to kcp itself, past the
// hub: what RBAC says, whatever the hub's gate would.
func (k *KCP) Straight(t testing.TB, as, cluster, path string) int {
	t.Helper()
	config := rest.AnonymousClientConfig(k.config(t))
	config.BearerToken = Token(as)
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
