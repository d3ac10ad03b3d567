package transport_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// listen listens on loopback and serves each connection.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go serve(c)
		}
	}()
	return l.Addr().String()
}

func TestConnection_withoutAnswersTimesOut(t *testing.T) {
	t.Parallel()
	for name, within := range map[string]time.Duration{
		"as long as the context says":              500 * time.Millisecond,
		"not longer than a handshake, without one": 0,
	} {
		for method, write := range writes {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				clients := newClients(t, &rest.Config{Host: "https://" + listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })})
				ctx := t.Context()
				if within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, within)
					defer cancel()
				}
				err := write(ctx, clients)
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				require.True(t, timeout.Timeout(), "%v", err)
				if within > 0 {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.ErrorContains(t, err, "TLS handshake timeout")
				}
			})
		}
	}
}

// nobody returns an address without a listener. It is bound for the whole test, because a
// parallel test may take a port that is only free.
func nobody(t *testing.T) string {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(s) })
	require.NoError(t, syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err := syscall.Getsockname(s)
	require.NoError(t, err)
	bound, ok := address.(*syscall.SockaddrInet4)
	require.True(t, ok)
	return fmt.Sprintf("127.0.0.1:%d", bound.Port)
}

func TestConnection_refusedFailsAtOnce(t *testing.T) {
	t.Parallel()
	began := time.Now()
	err := writes[http.MethodPost](t.Context(), newClients(t, &rest.Config{Host: "https://" + nobody(t)}))
	require.ErrorContains(t, err, "connection refused")
	require.Less(t, time.Since(began), 10*time.Second)
}

// cutter is a TCP proxy to a kcp whose connections can go silent, as when a machine or a
// network fails.
type cutter struct {
	to string

	mu     sync.Mutex
	silent chan struct{}
	held   chan struct{}
}

func (c *cutter) serve(from net.Conn) {
	c.mu.Lock()
	silent := c.silent
	c.mu.Unlock()
	to, err := new(net.Dialer).Dial("tcp", c.to)
	if err != nil {
		_ = from.Close()
		return
	}
	pass := func(dst, src net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := src.Read(buffer)
			if err != nil {
				break
			}
			select {
			case <-silent:
				continue
			default:
			}
			c.pass()
			if _, err := dst.Write(buffer[:n]); err != nil {
				break
			}
		}
		_, _ = dst.Close(), src.Close()
	}
	go pass(to, from)
	pass(from, to)
}

// block holds the data of both directions back until resume is called.
func (c *cutter) block() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan struct{})
	c.held = held
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = nil
		close(held)
	}
}

// pass waits while data is held back.
func (c *cutter) pass() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		<-held
	}
}

// cut silences all open connections.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.silent)
	c.silent = make(chan struct{})
}

// through returns a configuration of clients that connect through the cutter.
func (c *cutter) through(t *testing.T, f *fakeKCP) *rest.Config {
	t.Helper()
	c.to, c.silent = f.Listener.Addr().String(), make(chan struct{})
	config := f.config()
	config.Host = "https://" + listen(t, c.serve)
	return config
}

func TestConnection_silentIsReplaced(t *testing.T) {
	t.Parallel()
	c := &cutter{}
	clients := newClients(t, c.through(t, newKCP(t, true, nil, nil)))
	require.NoError(t, writes[http.MethodPost](t.Context(), clients))
	c.cut()
	began := time.Now()
	err := writes[http.MethodPost](t.Context(), clients)
	require.Error(t, err, "whether it was written is not known")
	require.Less(t, time.Since(began), 10*time.Second)
	require.NoError(t, writes[http.MethodPost](t.Context(), clients), "the next one has a new connection")
}

// watching is a kcp that serves a watch without an event for longer than a connection may
// be silent.
func watching(t *testing.T) *fakeKCP {
	t.Helper()
	f := newKCP(t, true, nil, nil)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(7 * time.Second):
			_, _ = fmt.Fprintln(w, `{"type":"ADDED","object":{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"User","metadata":{"name":"u"}}}`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	return f
}

func TestWatch_withoutEventsStaysOpen(t *testing.T) {
	t.Parallel()
	w, err := newClients(t, watching(t).config()).Users("c").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	require.Equal(t, watch.Added, await(t, w.ResultChan()).Type)
}

func TestWatch_endsOnASilentConnection(t *testing.T) {
	t.Parallel()
	c := &cutter{}
	config := c.through(t, watching(t))
	w, err := newClients(t, config).Users("c").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	c.cut()
	began := time.Now()
	event := await(t, w.ResultChan())
	require.NotEqual(t, watch.Added, event.Type)
	require.Less(t, time.Since(began), 10*time.Second)
}

// A load balancer in front of a shard can send each new connection to another process.
func TestConnections_areNewForEveryRequestOfFreshClients(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %v", http2), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			peers := map[string]bool{}
			server := newKCP(t, http2, nil, func(r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				peers[r.RemoteAddr] = true
				require.Equal(t, http2, r.ProtoMajor == 2)
			})
			clients := newClients(t, server.config())
			ask := func(by *kcp.Clients) int {
				clear(peers)
				for range 5 {
					require.NoError(t, writes[http.MethodPost](t.Context(), by))
				}
				return len(peers)
			}
			require.Equal(t, 1, ask(clients), "the control")
			require.Equal(t, 5, ask(clients.Fresh()))
			require.Equal(t, 1, ask(clients), "the connection of the others is open still")
		})
	}
}
