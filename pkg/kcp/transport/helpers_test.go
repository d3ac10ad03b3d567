package transport_test

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const long = 30 * time.Second

// fakeKCP answers every request with the body that it received, or with an empty User.
type fakeKCP struct {
	*httptest.Server
	// hook is called with every request whose body was received.
	hook func(*http.Request)

	mu       sync.Mutex
	requests []string
}

// newKCP starts a fakeKCP that speaks HTTP/2, or only HTTP/1.1. listener and hook may be
// nil.
func newKCP(t *testing.T, http2 bool, listener func(net.Listener) net.Listener, hook func(*http.Request)) *fakeKCP {
	t.Helper()
	f := &fakeKCP{hook: hook}
	f.Server = httptest.NewUnstartedServer(f)
	f.EnableHTTP2 = http2
	if listener != nil {
		f.Listener = listener(f.Listener)
	}
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

func (f *fakeKCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.requests = append(f.requests, r.Method)
	f.mu.Unlock()
	if f.hook != nil {
		f.hook(r)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet || r.Method == http.MethodDelete || len(body) == 0 {
		body = []byte(`{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"User","metadata":{"name":"u"}}`)
	}
	_, _ = w.Write(body)
}

func (f *fakeKCP) methods() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.requests...)
}

func (f *fakeKCP) config() *rest.Config {
	return &rest.Config{Host: f.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}),
	}}
}

func (f *fakeKCP) clients(t *testing.T) *kcp.Clients {
	t.Helper()
	return newClients(t, f.config())
}

func newClients(t *testing.T, config *rest.Config) *kcp.Clients {
	t.Helper()
	c, err := kcp.NewClients(config, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func aUser() *v1alpha1.User {
	return &v1alpha1.User{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "User"},
		ObjectMeta: metav1.ObjectMeta{Name: "u"},
	}
}

// await waits for a value of a channel, or for its end.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(long):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}
