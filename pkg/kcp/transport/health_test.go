package transport_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// probing probes a kcp until the test ends, and returns its health.
func probing(t *testing.T, clients *kcp.Clients) *transport.Health {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); clients.Transport().Probe(ctx) }()
	t.Cleanup(func() { stop(); await(t, ended) })
	return clients.Health()
}

func lost(t *testing.T, p *transport.Health) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Err() != nil }, long, time.Millisecond)
	require.False(t, p.Ready())
	var told *errs.Error
	require.ErrorAs(t, p.Err(), &told)
	require.Equal(t, errs.Unavailable, told.Code)
	require.Positive(t, told.RetryAfter)
}

func recovered(t *testing.T, p *transport.Health) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Err() == nil && p.Ready() }, long, time.Millisecond)
}

func TestHealth_followsSilenceAndRecovery(t *testing.T) {
	t.Parallel()
	c := &cutter{}
	clients := newClients(t, c.through(t, newKCP(t, true, nil, nil)))
	p := probing(t, clients)
	recovered(t, p)
	there, err := p.Await(t.Context())
	require.NoError(t, err)
	told := make(chan struct{})
	p.OnUnavailable(sync.OnceFunc(func() { close(told) }))

	resume := c.block()
	lost(t, p)
	await(t, told)
	await(t, there.Done())
	began := time.Now()
	require.True(t, errs.Is(p.Wait(t.Context()), errs.Unavailable))
	require.GreaterOrEqual(t, time.Since(began), transport.MaxWait)
	waiting := make(chan error, 1)
	go func() {
		_, err := p.Await(t.Context())
		waiting <- err
	}()
	resume()
	require.NoError(t, await(t, waiting))
	recovered(t, p)
	require.NoError(t, p.Wait(t.Context()))
}

// A kcp that reports for long that it is not ready, or answers 429 for long, is unavailable.
func TestHealth_endsAfterFailedProbes(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusInternalServerError, http.StatusTooManyRequests} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			var says atomic.Bool
			f := newKCP(t, true, nil, nil)
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if says.Load() {
					w.WriteHeader(code)
				}
			})
			p := probing(t, f.clients(t))
			recovered(t, p)
			says.Store(true)
			lost(t, p)
			says.Store(false)
			recovered(t, p)
		})
	}
}

// A kcp that is busy, or whose answers break off on the way, is available: requests to it
// are retried.
func TestHealth_staysDuringBusyOrBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"too many requests": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"torn": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "o")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bad atomic.Bool
			var probes atomic.Int64
			f := newKCP(t, true, nil, nil)
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if bad.Load() {
					probes.Add(1)
					answer(w, r)
				}
			})
			clients := f.clients(t)
			// On a busy machine pings are late too.
			clients.Health().SetInterval(500 * time.Millisecond)
			p := probing(t, clients)
			recovered(t, p)
			gone := make(chan struct{}, 1)
			p.OnUnavailable(func() { gone <- struct{}{} })
			bad.Store(true)
			require.Eventually(t, func() bool { return probes.Load() > 5 }, long, time.Millisecond)
			require.Empty(t, gone)
			require.NoError(t, p.Err())
		})
	}
}

// A probe may take longer than silence may last.
func TestHealth_staysDuringSlowAnswers(t *testing.T) {
	t.Parallel()
	f := newKCP(t, true, nil, func(*http.Request) { <-time.After(7 * time.Second) })
	clients := f.clients(t)
	// Silence may last 4.5 s, because pings are late on a busy machine.
	clients.Health().SetInterval(750 * time.Millisecond)
	p := probing(t, clients)
	_, err := clients.FailFast().Users("c").Get(t.Context(), "u", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, p.Err())
	recovered(t, p)
}

// One tenant's large lists must not close the hub to all: a kcp that answers them is available, even if it is too busy to
// answer the hub.
func TestHealth_staysWhileKCPAnswersTenants(t *testing.T) {
	t.Parallel()
	c := &cutter{}
	p := probing(t, newClients(t, c.through(t, newKCP(t, true, nil, nil))))
	recovered(t, p)
	tenant, busy := net.Pipe()
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, p.Hear(tenant)) })
	defer c.block()()
	// Silence may last half as long.
	for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(50 * time.Millisecond) {
		_, err := busy.Write([]byte("part of a list"))
		require.NoError(t, err)
		require.NoError(t, p.Err())
	}
	require.NoError(t, busy.Close())
	reading.Wait()
	lost(t, p)
}

// stored is a connection on which everything has arrived.
type stored struct{ net.Conn }

func (stored) Read(b []byte) (int, error) { return len(b), nil }

// A tenant who reads a large answer slowly must not hide that kcp has stopped since.
func TestHealth_hearsNothingInWhatATenantIsSlowToRead(t *testing.T) {
	t.Parallel()
	c := &cutter{}
	p := probing(t, newClients(t, c.through(t, newKCP(t, true, nil, nil))))
	recovered(t, p)
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		for answer := p.Hear(stored{}); ctx.Err() == nil; <-time.After(10 * time.Millisecond) {
			_, _ = answer.Read(make([]byte, 32))
		}
	})
	defer reading.Wait()
	defer stop()
	defer c.block()()
	lost(t, p)
}

func TestFailFast_returnsErrorsForCallers(t *testing.T) {
	t.Parallel()
	unavailable := func(t *testing.T, err error) {
		t.Helper()
		var told *errs.Error
		require.ErrorAs(t, err, &told)
		require.Equal(t, errs.Unavailable, told.Code)
	}
	t.Run("no server listens", func(t *testing.T) {
		t.Parallel()
		unavailable(t, writes[http.MethodPost](t.Context(), newClients(t, &rest.Config{Host: "https://" + nobody(t)}).FailFast()))
	})
	t.Run("kcp becomes unavailable during a request", func(t *testing.T) {
		t.Parallel()
		c := &cutter{}
		clients := newClients(t, c.through(t, newKCP(t, true, nil, nil)))
		p := probing(t, clients)
		recovered(t, p)
		defer c.block()()
		began := time.Now()
		unavailable(t, writes[http.MethodPost](t.Context(), clients.FailFast()))
		require.Less(t, time.Since(began), 10*time.Second)
		require.Error(t, p.Err())
		began = time.Now()
		unavailable(t, writes[http.MethodPost](t.Context(), clients.FailFast()))
		require.Less(t, time.Since(began), 5*time.Second, "it fails at once while kcp is unavailable")
	})
	t.Run("the answer breaks off", func(t *testing.T) {
		t.Parallel()
		f := newKCP(t, true, nil, nil)
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"apiVersion":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		unavailable(t, writes[http.MethodPost](t.Context(), f.clients(t).FailFast()))
	})
	t.Run("the caller cancels", func(t *testing.T) {
		t.Parallel()
		ctx, leave := context.WithCancel(t.Context())
		f := newKCP(t, true, nil, func(r *http.Request) { leave(); <-r.Context().Done() })
		err := writes[http.MethodPost](ctx, f.clients(t).FailFast())
		require.ErrorIs(t, err, context.Canceled)
		var told *errs.Error
		require.NotErrorAs(t, err, &told)
	})
}
