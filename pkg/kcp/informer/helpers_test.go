package informer_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const long = 30 * time.Second

// fakeKCP is a server whose handler a test sets.
type fakeKCP struct{ *httptest.Server }

func newKCP(t *testing.T) *fakeKCP {
	t.Helper()
	return startKCP(t, true)
}

func startKCP(t *testing.T, http2 bool) *fakeKCP {
	t.Helper()
	f := &fakeKCP{httptest.NewUnstartedServer(http.NotFoundHandler())}
	f.EnableHTTP2 = http2
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

func (f *fakeKCP) clients(t *testing.T) *kcp.Clients {
	t.Helper()
	c, err := kcp.NewClients(&rest.Config{Host: f.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}),
	}}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
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
