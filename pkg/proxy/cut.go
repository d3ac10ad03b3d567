package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// stream is a proxied request and its answer.
type stream struct {
	key    streamKey
	caller Caller
	// payer is that of Config.Payer for the Organization of the Workspace.
	payer string
	// longRunning is true if the answer does not end by itself: a watch, a followed log or
	// an upgraded connection.
	longRunning bool
	// opened is the entry that the gate returned. Its Sudo is true if the request uses sudo.
	opened tenancy.Entry
	// cancel ends the request to kcp.
	cancel       context.CancelFunc
	client       http.ResponseWriter
	flushTimeout time.Duration
	// state is nil until kcp has the whole request, then sent, and at last a termination
	// or finished. Each step is one compare-and-swap, so that kcp never gets the rest of a
	// request that was terminated.
	state    atomic.Pointer[termination]
	upgraded atomic.Bool
	answer   guardedBody
	// replay is the beginning of a watch that counts as a list. It is nil for other requests.
	replay *replay
	// outgrown is nil for an answer that counts as a heavy one already, and for one that does not count.
	outgrown *outgrown
	pace     *pace
	// used counts what the answer uses.
	used usage.Request
	// expiry is nil before the timer of the credential is set, and where there is none.
	expiry atomic.Pointer[expiry]

	// prev and next link the open streams of one person.
	prev, next *stream
}

// termination says why a stream was terminated.
type termination struct {
	// cause is the error for a client without an answer.
	cause error
	// learnedAt is when the hub learned of a revocation. It is zero for other causes.
	learnedAt time.Time
	// sending is true if kcp did not have the whole request. unblocked is closed after
	// the deadlines of the client's connection are set.
	sending   bool
	unblocked chan struct{}
}

var (
	// sent is the state of a stream after kcp has the whole request. finished is the state
	// of a stream that was not terminated and never will be.
	sent, finished = &termination{}, &termination{}
)

// end terminates a stream, once, and reports whether it did. From then on no byte passes in either
// direction. It waits for neither side.
func (s *stream) end(e termination) bool {
	return s.endFrom(nil, e) || s.endFrom(sent, e)
}

// interrupt terminates a stream, and reports whether it did. It lets an ordinary request finish that kcp
// has received completely, because kcp has authorized it already.
func (s *stream) interrupt(e termination) bool {
	if s.longRunning {
		return s.end(e)
	}
	return s.endFrom(nil, e)
}

func (s *stream) endFrom(was *termination, e termination) bool {
	e.sending, e.unblocked = was == nil, make(chan struct{})
	if !s.state.CompareAndSwap(was, &e) {
		return false
	}
	s.cancel()
	go s.unblock(&e)
	return true
}

// ended returns the cause of the termination, or nil.
func (s *stream) ended() error {
	if e := s.state.Load(); e != nil {
		return e.cause
	}
	return nil
}

// Recheck terminates the streams of a caller to which the right ended or was lowered, or
// whose credential is no longer valid. An empty user stands for everybody. It is called
// after every change of what Enter and Caller.Valid return.
// It reads caches only and waits for no client. When it returns, no byte passes through a
// terminated stream.
func (p *Proxy) Recheck(user string) {
	learnedAt := time.Now()
	for key, open := range p.streams.of(user) {
		p.recheck(key, learnedAt, open...)
	}
}

// RecheckClusters is Recheck for the streams of everybody in logical clusters.
func (p *Proxy) RecheckClusters(clusters ...string) {
	learnedAt := time.Now()
	for key, open := range p.streams.in(clusters) {
		p.recheck(key, learnedAt, open...)
	}
}

// Unbound terminates the streams of a person in a logical cluster after kcp removed their
// binding to a role that the gate does not give them. kcp may have authorized any of
// them by that binding after the last Recheck. It waits for no client.
func (p *Proxy) Unbound(user, cluster, role string) {
	learnedAt := time.Now()
	now, err := p.config.Enter(user, cluster)
	if err == nil && now.Gives(role) {
		return
	}
	for key, open := range p.streams.of(user) {
		if key.cluster != cluster {
			continue
		}
		for _, s := range open {
			p.revoke(s, err != nil, learnedAt)
		}
	}
}

func (p *Proxy) recheck(key streamKey, learnedAt time.Time, open ...*stream) {
	now, err := p.config.Enter(key.user, key.cluster)
	for _, s := range open {
		if errs.Is(err, errs.Unavailable) {
			// The right cannot be checked at the moment.
			s.interrupt(termination{cause: err})
			continue
		}
		if err != nil || !now.Covers(s.opened) {
			p.revoke(s, err != nil, learnedAt)
			continue
		}
		if err := s.caller.Valid(); err != nil {
			p.cuts.count(s, s.end(termination{cause: err, learnedAt: learnedAt}))
			continue
		}
		if e := s.expiry.Load(); e != nil {
			// The end may have been brought forward.
			e.arm(s.caller.EndsAt())
		}
	}
}

// revoke terminates a stream because the right to it ended (wholly) or was lowered.
func (p *Proxy) revoke(s *stream, wholly bool, learnedAt time.Time) {
	end := s.interrupt
	if wholly {
		end = s.end
	}
	p.cuts.count(s, end(termination{cause: rightEnded(), learnedAt: learnedAt}))
}

// expire has a stream terminated when the credential of its caller ends by time. An ordinary
// request that kcp has in whole goes on: kcp has authenticated it already. The caller must
// call stop.
func (p *Proxy) expire(s *stream) (stop func()) {
	at := s.caller.EndsAt()
	if at.IsZero() || !s.longRunning && s.state.Load() == sent {
		return func() {}
	}
	e := &expiry{clock: p.config.Clock, stream: s}
	// A recheck from now on finds the timer.
	s.expiry.Store(e)
	e.arm(s.caller.EndsAt())
	return e.stop
}

// expiry is the timer of the end of a credential.
type expiry struct {
	clock  clock.WithDelayedExecution
	stream *stream

	mu      sync.Mutex
	timer   clock.Timer
	stopped bool
}

// arm sets the timer. The end may have moved when it comes, because the Session of the
// credential was used meanwhile.
func (e *expiry) arm(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped || at.IsZero() {
		return
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	e.timer = e.clock.AfterFunc(at.Sub(e.clock.Now()), func() {
		if next := e.stream.caller.EndsAt(); next.After(at) {
			// The clock of a test calls this while it is locked.
			go e.arm(next)
			return
		}
		e.stream.interrupt(termination{cause: expired()})
	})
}

func (e *expiry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.timer != nil {
		e.timer.Stop()
	}
}

func expired() error {
	return errs.New(errs.Unauthenticated, "the token expired or its session ended while the request was open; repeat the request with a new one")
}

func rightEnded() error {
	return errs.New(errs.Forbidden,
		"your right to this workspace ended, or became less, while the request was open; ask an admin of the workspace or of its organization, or repeat the request with the rights that you still have")
}

// refusal returns the error for a client without an answer, or nil if the stream was not
// terminated.
func (s *stream) refusal(w http.ResponseWriter, r *http.Request) error {
	e := s.state.Load()
	if e == nil || e.cause == nil {
		return nil
	}
	if e.sending && r.ProtoMajor == 1 {
		// The rest of this request is not read, so the connection cannot be reused.
		w.Header().Set("Connection", "close")
	}
	return e.cause
}

// guard passes kcp's answer through the stream. It fails if the stream was terminated before
// the answer began.
func (s *stream) guard(r *http.Response) error {
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		s.upgraded.Store(true)
		r.Body = &guardedConn{conn, s}
	} else {
		s.answer = guardedBody{r.Body, s}
		r.Body = &s.answer
	}
	return s.ended()
}

// guardedBody is the body of an answer, which ends when its stream is terminated. A
// long-running one ends with EOF: the client lists again and gets the refusal. Any other
// fails, so that the client does not take a part for the whole.
type guardedBody struct {
	io.ReadCloser
	stream *stream
}

// Read checks the stream after reading, so that nothing passes that was read later.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.stream.read(b.ReadCloser, p)
	if ended := b.stream.ended(); ended != nil {
		if b.stream.longRunning {
			return 0, io.EOF
		}
		return 0, ended
	}
	b.stream.used.Out(n)
	return n, err
}

// guardedConn is an upgraded connection to kcp. It fails in both directions when its stream
// is terminated.
type guardedConn struct {
	io.ReadWriteCloser
	stream *stream
}

func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.stream.read(c.ReadWriteCloser, p)
	if ended := c.stream.ended(); ended != nil {
		return 0, ended
	}
	c.stream.used.Out(n)
	return n, err
}

func (c *guardedConn) Write(p []byte) (int, error) {
	if ended := c.stream.ended(); ended != nil {
		return 0, ended
	}
	return c.ReadWriteCloser.Write(p)
}

// CloseWrite supports clients that stop sending and still read.
func (c *guardedConn) CloseWrite() error {
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// unblock sets deadlines on the client's connection, so that a terminated stream does not
// wait for a client that neither reads nor writes.
func (s *stream) unblock(e *termination) {
	defer close(e.unblocked)
	control, now := http.NewResponseController(s.client), time.Now()
	if s.upgraded.Load() {
		_ = control.SetReadDeadline(now)
		_ = control.SetWriteDeadline(now)
		return
	}
	if e.sending {
		_ = control.SetReadDeadline(now)
	}
	_ = control.SetWriteDeadline(now.Add(s.flushTimeout))
}

// finish is called before the handler returns. The connection then belongs to the requests
// that follow on it, so finish removes the deadline of a termination.
func (s *stream) finish() {
	if s.state.CompareAndSwap(nil, finished) || s.state.CompareAndSwap(sent, finished) {
		return
	}
	<-s.state.Load().unblocked
	_ = http.NewResponseController(s.client).SetWriteDeadline(time.Time{})
}
