package kcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// recorded serves a kcp that refuses all requests, and returns its URL and what was recorded of them.
func recorded(t *testing.T, of func(*http.Request) string) (url string, sent func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, of(r))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func TestWithToken_sendsNoOtherCredential(t *testing.T) {
	t.Parallel()
	url, sent := recorded(t, func(r *http.Request) string { return fmt.Sprint(r.Header["Authorization"]) })
	admin, err := kcp.NewClients(&rest.Config{Host: url, BearerToken: "admin-token"}, prometheus.NewRegistry())
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
	require.Equal(t, []string{"[Bearer alice-token]", "[Bearer bob-token]", "[]", "[Bearer admin-token]"}, sent())
}

// The intents of ends depend on it: no client that is made of another one writes unannounced.
func TestClients_announceTheWritesOfEachCaller(t *testing.T) {
	t.Parallel()
	url, _ := recorded(t, func(*http.Request) string { return "" })
	announced := 0
	clients, err := kcp.NewClients(&rest.Config{Host: url}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	admin := clients.Announcing(func(context.Context) { announced++ })
	right := func() (time.Time, error) { return time.Time{}, nil }
	writers := admin.FailFast().Admitted(func() error { return nil }).Fenced(right)
	anonymous, err := writers.Anonymous()
	require.NoError(t, err)
	for i, c := range []*kcp.Clients{admin, writers, anonymous.WithToken("alice-token")} {
		require.Error(t, c.Namespaces("one").Delete(t.Context(), "x", metav1.DeleteOptions{}))
		require.Equal(t, i+1, announced)
	}
}

func TestClients_sendNothingToAClusterWithoutAName(t *testing.T) {
	t.Parallel()
	url, sent := recorded(t, func(r *http.Request) string { return r.URL.Path })
	clients, err := kcp.NewClients(&rest.Config{Host: url}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	_, err = clients.APIBindings("").Get(t.Context(), "x", metav1.GetOptions{})
	require.ErrorContains(t, err, "no name")
	require.ErrorContains(t, clients.Namespaces("").Delete(t.Context(), "x", metav1.DeleteOptions{}), "no name")
	require.Empty(t, sent())
	_, err = clients.APIBindings("one").Get(t.Context(), "x", metav1.GetOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"/clusters/one/apis/apis.kcp.io/v1alpha2/apibindings/x"}, sent())
}
