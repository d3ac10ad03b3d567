package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// beat is how often it is looked whether anything came from kcp. As many beats as
	// maxSilence without anything, and kcp is gone: they are counted rather than
	// time, because a process that was paused heard nothing itself.
	beat       = 250 * time.Millisecond
	maxSilence = 6
	// A probe is sent every second beat, whether or not those before were answered: a
	// kcp that is slow is not gone. As many failures in a row as maxFailures, and it
	// is, whatever it says.
	beatsPerProbe = 2
	probeTimeout  = 10 * time.Second
	maxFailures   = 3
	// As many probes in a row as maxBusy that kcp has too much to do for, and they fail
	// from then on: for ten seconds and more nobody waits.
	maxBusy = 20
)

// MaxWait is how long a caller waits for a kcp that is gone to come back, before
// they are told.
const MaxWait = 1200 * time.Millisecond

// retryAfter is what a caller is told to wait.
const retryAfter = 2 * time.Second

// Health tells whether kcp is there. What counts is that anything comes from it, not
// how fast it answers.
type Health struct {
	beat  time.Duration
	heard atomic.Bool
	ready atomic.Bool
	// busy is how many probes in a row kcp had too much to do for.
	busy atomic.Int64

	mu sync.Mutex
	// there ends when kcp goes; back, which is nil as long as it is there, is closed
	// when it comes.
	there    context.Context //nolint:containedctx // a signal
	lose     context.CancelFunc
	back     chan struct{}
	failures int
	onGone   []func()
}

// NewHealth returns that of a kcp which is taken to be there until somebody listens.
func NewHealth() *Health {
	p := &Health{beat: beat}
	p.there, p.lose = context.WithCancel(context.Background())
	return p
}

// Probe keeps the pulse until ctx ends.
func (t *Transport) Probe(ctx context.Context) {
	p := t.health
	var probes sync.WaitGroup
	defer probes.Wait()
	ticker := time.NewTicker(p.beat)
	defer ticker.Stop()
	silence := 0
	for n := 0; ; n++ {
		if n%beatsPerProbe == 0 {
			probes.Go(func() {
				ok, busy := t.probe(ctx)
				if !busy {
					p.busy.Store(0)
				} else if p.busy.Add(1) <= maxBusy {
					return
				}
				p.probed(ctx, ok)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p.heard.Swap(false) {
			silence = 0
		} else if silence++; silence >= maxSilence {
			p.Lose()
		}
	}
}

// probe asks kcp whether it is ready. One that has too much to do to say so is there;
// the status is enough, because an answer that breaks off breaks off on the way.
func (t *Transport) probe(ctx context.Context) (ok, busy bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.host+"/readyz", http.NoBody)
	if err != nil {
		return false, false
	}
	response, err := t.probes.Do(r)
	if err != nil {
		return false, false
	}
	defer func() { _ = response.Body.Close() }()
	// Read whole, the connection serves the next one.
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK, response.StatusCode == http.StatusTooManyRequests
}

func (p *Health) probed(ctx context.Context, ok bool) {
	if ctx.Err() != nil {
		return
	}
	if ok {
		p.ready.Store(true)
	}
	if p.counted(ok) >= maxFailures {
		p.Lose()
	}
}

// counted returns how many probes have failed in a row. With one that did not, kcp is
// there.
func (p *Health) counted(ok bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		p.failures++
		return p.failures
	}
	p.failures = 0
	if p.back != nil {
		p.there, p.lose = context.WithCancel(context.Background())
		close(p.back)
		p.back = nil
	}
	return 0
}

// Lose makes kcp unavailable.
func (p *Health) Lose() {
	p.ready.Store(false)
	p.mu.Lock()
	was, tell := p.back == nil, p.onGone
	if was {
		p.back = make(chan struct{})
		p.lose()
	}
	p.mu.Unlock()
	if was {
		for _, f := range tell {
			f()
		}
	}
}

// Recover makes kcp available.
func (p *Health) Recover() { p.counted(true) }

// OnUnavailable has f called whenever kcp goes; it must not block.
func (p *Health) OnUnavailable(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onGone = append(p.onGone, f)
}

// Ready tells whether kcp said so itself, and not the contrary since.
func (p *Health) Ready() bool { return p.ready.Load() }

// Err is nil while kcp is there, and what a caller is told otherwise.
func (p *Health) Err() error {
	if there, _ := p.now(); there.Err() != nil {
		return unavailable(errGone)
	}
	return nil
}

func (p *Health) now() (there context.Context, back <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.there, p.back
}

// Await waits until kcp is there and returns a context that ends when it goes, or
// the error of ctx where that ends first.
func (p *Health) Await(ctx context.Context) (there context.Context, err error) {
	for {
		there, back := p.now()
		if back == nil {
			return there, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-back:
		}
	}
}

// Wait is nil once kcp is there, for which it waits as long as callers do, and
// what a caller is told otherwise.
func (p *Health) Wait(ctx context.Context) error {
	if p.Err() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	if _, err := p.Await(ctx); err != nil {
		return unavailable(errGone)
	}
	return nil
}

var errGone = errors.New("nothing comes from kcp any more")

func unavailable(err error) *errs.Error {
	e := errs.Wrap(errs.Unavailable, err, "kcp cannot be reached at the moment; try again")
	e.RetryAfter = retryAfter
	return e
}

// hearing is a connection to kcp whose other end is listened to.
type hearing struct {
	net.Conn
	heard *atomic.Bool
}

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if n > 0 && !h.heard.Load() {
		h.heard.Store(true)
	}
	return n, err
}

// Bind returns a RoundTripper whose requests, and answers, end when kcp goes. They
// fail with an *errs.Error then, as they do where there is nobody to connect to or
// an answer breaks off.
func (p *Health) Bind(next http.RoundTripper) http.RoundTripper { return bound{next, p} }

type bound struct {
	next   http.RoundTripper
	health *Health
}

func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	there, _ := b.health.now()
	if there.Err() != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, unavailable(errGone)
	}
	ctx, cancel := context.WithCancel(r.Context())
	unbind := context.AfterFunc(there, cancel)
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		unbind()
		cancel()
		var dial *net.OpError
		if r.Context().Err() == nil && (there.Err() != nil || errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect")) {
			return nil, unavailable(err)
		}
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		// Its body is a connection, which whoever has it closes.
		unbind()
		return response, nil
	}
	response.Body = &whole{held{ReadCloser: response.Body, end: func() { unbind(); cancel() }}}
	return response, nil
}

// whole is an answer's body that tells a broken one from one that the caller does
// not want any more.
type whole struct{ held }

func (w *whole) Read(b []byte) (int, error) {
	n, err := w.held.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unavailable(fmt.Errorf("kcp's answer broke off: %w", err))
	}
	return n, err
}
