package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

var errNotNow = errors.New("not now")

// right is a fencing right that a test grants and denies.
type right struct {
	denied atomic.Bool
	until  atomic.Pointer[time.Time]
	asked  atomic.Int32
}

func (r *right) ask() (time.Time, error) {
	r.asked.Add(1)
	if r.denied.Load() {
		return time.Time{}, errNotNow
	}
	if until := r.until.Load(); until != nil {
		return *until, nil
	}
	return time.Time{}, nil
}

// writes are the writes of each method.
var writes = map[string]func(context.Context, *kcp.Clients) error{
	http.MethodPost: func(ctx context.Context, c *kcp.Clients) error {
		_, err := c.Users("c").Create(ctx, aUser(), metav1.CreateOptions{})
		return err
	},
	http.MethodPut: func(ctx context.Context, c *kcp.Clients) error {
		_, err := c.Users("c").Update(ctx, aUser(), metav1.UpdateOptions{})
		return err
	},
	http.MethodPatch: func(ctx context.Context, c *kcp.Clients) error {
		_, err := c.Users("c").Patch(ctx, "u", types.MergePatchType, []byte(`{"kind":"User","apiVersion":"tenancy.kedge.faros.sh/v1alpha1"}`), metav1.PatchOptions{})
		return err
	},
	http.MethodDelete: func(ctx context.Context, c *kcp.Clients) error {
		return c.Users("c").Delete(ctx, "u", metav1.DeleteOptions{})
	},
}

// protocols are the versions of HTTP that kcp may speak; true is HTTP/2.
var protocols = map[string]bool{"HTTP/1.1": false, "HTTP/2": true}

func TestFenced_sendsNoWriteWithoutTheRight(t *testing.T) {
	t.Parallel()
	for protocol, http2 := range protocols {
		for method, write := range writes {
			t.Run(protocol+" "+method, func(t *testing.T) {
				t.Parallel()
				server, r := newKCP(t, http2, nil, nil), &right{}
				clients := server.clients(t)
				fenced := clients.Fenced(r.ask)
				require.NoError(t, write(t.Context(), fenced), "while it may")
				r.denied.Store(true)
				err := write(t.Context(), fenced)
				require.ErrorIs(t, err, transport.ErrFenced)
				require.ErrorIs(t, err, errNotNow, "it says why")
				_, err = fenced.Users("c").Get(t.Context(), "u", metav1.GetOptions{})
				require.NoError(t, err, "reads need no right")
				require.Equal(t, []string{method, http.MethodGet}, server.methods())
				require.NoError(t, write(t.Context(), clients), "the clients that it was made of are as before")
				r.denied.Store(false)
				require.NoError(t, write(t.Context(), fenced), "when it may again")
			})
		}
	}
}

// held is a listener that accepts after let is closed.
type held struct {
	net.Listener
	arrived, let chan struct{}
	once         sync.Once
}

func (h *held) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err == nil {
		h.once.Do(func() { close(h.arrived) })
		<-h.let
	}
	return c, err
}

func TestFenced_checksAgainAfterConnecting(t *testing.T) {
	t.Parallel()
	for protocol, http2 := range protocols {
		for method, write := range writes {
			t.Run(protocol+" "+method, func(t *testing.T) {
				t.Parallel()
				h, r := &held{arrived: make(chan struct{}), let: make(chan struct{})}, &right{}
				server := newKCP(t, http2, func(l net.Listener) net.Listener { h.Listener = l; return h }, nil)
				fenced := server.clients(t).Fenced(r.ask)
				answer := make(chan error, 1)
				go func() { answer <- write(t.Context(), fenced) }()
				await(t, h.arrived)
				require.Positive(t, r.asked.Load(), "it was let through before it waited")
				r.denied.Store(true)
				close(h.let)
				require.ErrorIs(t, await(t, answer), transport.ErrFenced)
				require.Empty(t, server.methods())
				r.denied.Store(false)
				require.NoError(t, write(t.Context(), fenced))
			})
		}
	}
}

func TestFenced_checksAgainAfterConnectingWithoutABody(t *testing.T) {
	t.Parallel()
	write := func(ctx context.Context, c *kcp.Clients) error {
		return c.Users("c").GetClient().Delete().Resource("users").Name("u").Do(ctx).Error()
	}
	h, r := &held{arrived: make(chan struct{}), let: make(chan struct{})}, &right{}
	server := newKCP(t, true, func(l net.Listener) net.Listener { h.Listener = l; return h }, nil)
	fenced := server.clients(t).Fenced(r.ask)
	answer := make(chan error, 1)
	go func() { answer <- write(t.Context(), fenced) }()
	await(t, h.arrived)
	r.denied.Store(true)
	close(h.let)
	require.ErrorIs(t, await(t, answer), transport.ErrFenced)
	require.Empty(t, server.methods())
	r.denied.Store(false)
	require.NoError(t, write(t.Context(), fenced))
}

func TestFenced_endsAHangingWriteAtTheDeadlineOfTheRight(t *testing.T) {
	t.Parallel()
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			gone := make(chan struct{})
			var hang atomic.Bool
			server := newKCP(t, http2, nil, func(r *http.Request) {
				if hang.Load() {
					<-r.Context().Done()
					close(gone)
				}
			})
			r := &right{}
			fenced := server.clients(t).Fenced(r.ask)
			until := time.Now().Add(time.Minute)
			r.until.Store(&until)
			require.NoError(t, writes[http.MethodPost](t.Context(), fenced), "in good time")

			hang.Store(true)
			until = time.Now().Add(2 * time.Second)
			err := writes[http.MethodPost](t.Context(), fenced)
			require.ErrorIs(t, err, transport.ErrFenced)
			require.False(t, time.Now().Before(until))
			require.Less(t, time.Since(until), long)
			await(t, gone)
		})
	}
}

// Timers may stand still while a machine is suspended.
func TestFenced_endsAHangingWriteWhenTheRightIsLost(t *testing.T) {
	t.Parallel()
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r, hung, gone := &right{}, make(chan struct{}), make(chan struct{})
			server := newKCP(t, http2, nil, func(request *http.Request) {
				close(hung)
				<-request.Context().Done()
				close(gone)
			})
			until := time.Now().Add(time.Hour)
			r.until.Store(&until)
			answer := make(chan error, 1)
			fenced := server.clients(t).Fenced(r.ask)
			go func() { answer <- writes[http.MethodPost](t.Context(), fenced) }()
			await(t, hung)
			r.denied.Store(true)
			err := await(t, answer)
			require.ErrorIs(t, err, transport.ErrFenced)
			require.ErrorIs(t, err, errNotNow)
			await(t, gone)
		})
	}
}

func TestFenced_reportsTheCallersDeadlineAsSuch(t *testing.T) {
	t.Parallel()
	server := newKCP(t, true, nil, func(r *http.Request) { <-r.Context().Done() })
	r := &right{}
	until := time.Now().Add(time.Minute)
	r.until.Store(&until)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := writes[http.MethodPost](ctx, server.clients(t).Fenced(r.ask))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, transport.ErrFenced)
}
