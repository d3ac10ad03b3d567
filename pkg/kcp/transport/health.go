package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MaxWait is how long a caller waits for an unavailable kcp before it is told.
const MaxWait = 1200 * time.Millisecond

// retryAfter is the Retry-After of answers while kcp is unavailable.
const retryAfter = 2 * time.Second

// ErrUnavailable says that kcp does not answer.
var ErrUnavailable = errors.New("kcp is unavailable")

// Health reports whether kcp, or what is cached of it, is available.
type Health struct {
	// interval is the time between two looks of a prober.
	interval time.Duration
	// heard is set whenever anything arrives on a connection.
	heard atomic.Bool
	ready atomic.Bool
	// busy is how many probes in a row were answered 429.
	busy atomic.Int64

	mu sync.Mutex
	// live ends when kcp becomes unavailable. recovered is nil while kcp is available,
	// and is closed when it becomes available again.
	live          context.Context //nolint:containedctx // it is a signal, not a request's context
	lose          context.CancelFunc
	recovered     chan struct{}
	failures      int
	onUnavailable []func()
}

// NewHealth returns a Health that is available until it is told otherwise.
func NewHealth() *Health {
	h := &Health{interval: interval}
	h.live, h.lose = context.WithCancel(context.Background())
	return h
}

// probed records the result of a probe and returns how many in a row have failed. A
// success makes kcp available.
func (h *Health) probed(ok bool) (failures int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok {
		h.failures++
		return h.failures
	}
	h.failures = 0
	if h.recovered != nil {
		h.live, h.lose = context.WithCancel(context.Background())
		close(h.recovered)
		h.recovered = nil
	}
	return 0
}

// Recover makes kcp available.
func (h *Health) Recover() { h.probed(true) }

// Lose makes kcp unavailable.
func (h *Health) Lose() {
	h.ready.Store(false)
	h.mu.Lock()
	was, notify := h.recovered == nil, h.onUnavailable
	if was {
		h.recovered = make(chan struct{})
		h.lose()
	}
	h.mu.Unlock()
	if was {
		for _, f := range notify {
			f()
		}
	}
}

// OnUnavailable has f called whenever kcp becomes unavailable; f must not block.
func (h *Health) OnUnavailable(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onUnavailable = append(h.onUnavailable, f)
}

// Ready reports whether kcp has reported ready since it became available.
func (h *Health) Ready() bool { return h.ready.Load() }

// Err is nil while kcp is available, and what a caller is told otherwise.
func (h *Health) Err() error {
	if live, _ := h.now(); live.Err() != nil {
		return unavailable(ErrUnavailable)
	}
	return nil
}

func (h *Health) now() (live context.Context, recovered <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live, h.recovered
}

// Await waits until kcp is available and returns a context that ends when it no longer
// is, or the error of ctx where that ends first.
func (h *Health) Await(ctx context.Context) (live context.Context, err error) {
	for {
		live, recovered := h.now()
		if recovered == nil {
			return live, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-recovered:
		}
	}
}

// Wait waits until kcp is available, at most MaxWait, and returns what a caller is told
// otherwise.
func (h *Health) Wait(ctx context.Context) error {
	if h.Err() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	if _, err := h.Await(ctx); err != nil {
		return unavailable(ErrUnavailable)
	}
	return nil
}

// errShard says that a shard of kcp does not answer.
var errShard = errors.New("a shard of kcp is unavailable")

// UnavailableShard is what a caller is told about something that lies on a shard that does not
// answer.
func UnavailableShard() error { return unavailable(errShard) }

func unavailable(err error) *errs.Error {
	return errs.Wrap(errs.Unavailable, err, "kcp cannot be reached at the moment; try again").After(retryAfter)
}

// Hear returns a connection to kcp on which bytes that arrive are a sign of life. Those that a client was slow to take have
// arrived before: they are there without a wait.
func (h *Health) Hear(c net.Conn) net.Conn { return tenantConn{liveConn{Conn: c, alive: &h.heard}} }

// liveConn is a connection to kcp on which every byte that is read is a sign of life.
type liveConn struct {
	net.Conn
	alive *atomic.Bool
}

// Read implements net.Conn.
func (c liveConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard(n)
	return n, err
}

func (c liveConn) heard(n int) {
	if n > 0 && !c.alive.Load() {
		c.alive.Store(true)
	}
}

// tenantConn is a liveConn whose data nobody may be taking.
type tenantConn struct{ liveConn }

// arriving is the shortest wait for data that was not there yet.
const arriving = time.Millisecond

// Read implements net.Conn.
func (c tenantConn) Read(b []byte) (int, error) {
	began := time.Now()
	n, err := c.Conn.Read(b)
	if time.Since(began) >= arriving {
		c.heard(n)
	}
	return n, err
}
