package kcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

func TestWithToken_sendsNoOtherCredential(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, fmt.Sprint(r.Header["Authorization"]))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	admin, err := kcp.NewClients(&rest.Config{Host: server.URL, BearerToken: "admin-token"}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	anonymous, err := admin.Anonymous()
	require.NoError(t, err)
	for _, c := range []*kcp.Clients{anonymous.WithToken("alice-token"), anonymous.WithToken("bob-token"), anonymous, admin} {
		_, err := c.APIBindings("one").Get(t.Context(), "x", metav1.GetOptions{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "token")
		require.NotContains(t, fmt.Sprintf("%v %+v", c, c), "alice-token")
	}
	require.Equal(t, []string{"[Bearer alice-token]", "[Bearer bob-token]", "[]", "[Bearer admin-token]"}, sent)
}

func TestClients_sendNothingToAClusterWithoutAName(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.URL.Path)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	_, err = clients.APIBindings("").Get(t.Context(), "x", metav1.GetOptions{})
	require.ErrorContains(t, err, "no name")
	require.ErrorContains(t, clients.Namespaces("").Delete(t.Context(), "x", metav1.DeleteOptions{}), "no name")
	require.Empty(t, sent)
	_, err = clients.APIBindings("one").Get(t.Context(), "x", metav1.GetOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"/clusters/one/apis/apis.kcp.io/v1alpha2/apibindings/x"}, sent)
}
