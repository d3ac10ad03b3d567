package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
)

// endingKCP is a kcp that is ready at once and ends with an error when end is closed.
type endingKCP struct {
	url string
	end chan struct{}
}

var errEnded = errors.New("etcd has no room")

func (k endingKCP) Run(context.Context) error { <-k.end; return errEnded }

func (endingKCP) Ready() <-chan struct{} {
	ready := make(chan struct{})
	close(ready)
	return ready
}

func (k endingKCP) AdminConfig() (*rest.Config, error) { return &rest.Config{Host: k.url}, nil }

func (endingKCP) SetIssuers([]apiserverv1.JWTAuthenticator) error { return nil }

func (endingKCP) Snapshot(context.Context, func(revision, size int64, r io.Reader) error) error {
	return errEnded
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// A kcp that ends while the hub still waits for it ends the hub, with its error: nothing else would end that wait.
func TestStart_endsWithTheEmbeddedKCP(t *testing.T) {
	t.Parallel()
	k := endingKCP{end: make(chan struct{})}
	var asked sync.Once
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Do(func() { close(k.end) })
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer upstream.Close()
	k.url = upstream.URL
	o := NewOptions()
	o.DataDir, o.ListenAddress, o.MetricsListenAddress = t.TempDir(), freeAddress(t), freeAddress(t)
	config, err := o.Complete()
	require.NoError(t, err)
	newKCP := func(connect.EmbeddedOptions) (connect.KCP, error) { return k, nil }
	require.ErrorIs(t, Run(t.Context(), config, newKCP, io.Discard), errEnded)
}
