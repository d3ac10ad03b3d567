package proxy

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// stream is a request on its way to kcp, and its answer on the way back.
type stream struct {
	at place
	// endless is set where the answer does not end by itself: a watch, or an
	// upgraded connection.
	endless bool
	// opened is the right that it was opened with, Sudo only where it uses that.
	opened tenancy.Entry
	// cancel ends the request to kcp.
	cancel  context.CancelFunc
	client  http.ResponseWriter
	parting time.Duration
	// over is nil as long as the client has something of the request to send, then
	// sent; and at last an ending, or finished. Each step is one compare-and-swap:
	// what is cut while it is sent is never sent to its end.
	over     atomic.Pointer[ending]
	upgraded atomic.Bool
	answer   guardedBody

	// before and behind are the neighbours among the person's open streams.
	before, behind *stream
}

// ending is why a stream was ended.
type ending struct {
	// cause is the answer to a client who has none yet.
	cause error
	// learned is when the hub learned that the right had ended; zero where it did
	// not.
	learned time.Time
	// sending is set where the client had something of the request to send still;
	// unblocked is closed when nobody waits for them any more.
	sending   bool
	unblocked chan struct{}
}

var (
	// sent is a stream whose request kcp has wholly, finished one that nobody can end
	// any more: neither is the end of one.
	sent, finished = &ending{}, &ending{}
)

// end ends a stream, once. Nothing that is read from kcp afterwards goes to the
// client, nor the other way; end waits for neither.
func (s *stream) end(e ending) {
	_ = s.endFrom(nil, e) || s.endFrom(sent, e)
}

// interrupt ends a stream unless it is an ordinary request that kcp has wholly: what
// kcp does about that, it does by the rights of then.
func (s *stream) interrupt(e ending) {
	if s.endless {
		s.end(e)
		return
	}
	s.endFrom(nil, e)
}

func (s *stream) endFrom(was *ending, e ending) bool {
	e.sending, e.unblocked = was == nil, make(chan struct{})
	if !s.over.CompareAndSwap(was, &e) {
		return false
	}
	s.cancel()
	go s.unblock(&e)
	return true
}

// ended is the cause why the stream was ended; nil where it was not.
func (s *stream) ended() error {
	if e := s.over.Load(); e != nil {
		return e.cause
	}
	return nil
}

// Recheck ends what a person, everybody where user is empty, has open with a right
// that has ended, or that is less than it was. It is called behind every change of
// what Enter says, reads memory only and waits for no client; when it returns,
// nothing that kcp sends goes to an ended stream's client any more, and nothing that
// the client sends to kcp.
func (p *Proxy) Recheck(user string) {
	learned := time.Now()
	for at, open := range p.streams.of(user) {
		p.recheck(at, learned, open...)
	}
}

// Unbound ends what a person has open in a logical cluster where kcp has taken away a
// ClusterRole that the gate does not give them any more: kcp may have let some in with
// it since they were looked at last, and nothing tells which. It does not wait, as
// Recheck does not.
func (p *Proxy) Unbound(user, cluster, clusterRole string) {
	learned := time.Now()
	now, err := p.config.Enter(user, cluster)
	if err == nil && now.Gives(clusterRole) {
		return
	}
	for at, open := range p.streams.of(user) {
		if at.cluster != cluster {
			continue
		}
		for _, s := range open {
			s.revoke(err != nil, learned)
		}
	}
}

func (p *Proxy) recheck(at place, learned time.Time, open ...*stream) {
	now, err := p.config.Enter(at.user, at.cluster)
	for _, s := range open {
		if errs.Is(err, errs.Unavailable) {
			// Whether there is a right still, nobody can tell at the moment.
			s.interrupt(ending{cause: err})
			continue
		}
		if err != nil || !now.Covers(s.opened) {
			s.revoke(err != nil, learned)
		}
	}
}

// revoke ends a stream because its person has no right there any more, or, where not
// wholly, less.
func (s *stream) revoke(wholly bool, learned time.Time) {
	e := ending{cause: rightEnded(), learned: learned}
	if wholly {
		s.end(e)
		return
	}
	s.interrupt(e)
}

func rightEnded() error {
	return errs.New(errs.Forbidden,
		"your right to this workspace ended, or became less, while the request was open; ask an admin of the workspace or of its organization, or repeat the request with the rights that you still have")
}

// refusal is what a client gets who has no answer yet, nil where the stream goes on.
func (s *stream) refusal(w http.ResponseWriter, r *http.Request) error {
	e := s.over.Load()
	if e == nil || e.cause == nil {
		return nil
	}
	if e.sending && r.ProtoMajor == 1 {
		// On the connection no request can come behind one that was not read.
		w.Header().Set("Connection", "close")
	}
	return e.cause
}

// guard puts the stream between kcp's answer and the client. It fails where the
// stream has ended before the answer began.
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

// guardedBody is an answer that ends when its stream is ended. A watch ends well:
// its clients then list again, and are told there why they may not. Every other
// answer fails, so that nobody takes a part for all of it.
type guardedBody struct {
	io.ReadCloser
	stream *stream
}

// Read asks after reading: what was read came before the end of the stream then.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if ended := b.stream.ended(); ended != nil {
		if b.stream.endless {
			return 0, io.EOF
		}
		return 0, ended
	}
	return n, err
}

// guardedConn is an upgraded connection to kcp. It fails when its stream is
// ended, rather than end one way only.
type guardedConn struct {
	io.ReadWriteCloser
	stream *stream
}

func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	if ended := c.stream.ended(); ended != nil {
		return 0, ended
	}
	return n, err
}

func (c *guardedConn) Write(p []byte) (int, error) {
	if ended := c.stream.ended(); ended != nil {
		return 0, ended
	}
	return c.ReadWriteCloser.Write(p)
}

// CloseWrite is for clients who have said all and still listen.
func (c *guardedConn) CloseWrite() error {
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// unblock sees to it that an ended stream does not wait for a client who neither
// reads nor writes.
func (s *stream) unblock(e *ending) {
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
	_ = control.SetWriteDeadline(now.Add(s.parting))
}

// finish is called before the handler returns: from then on the connection, and the
// requests that come behind on it, are no business of the stream's.
func (s *stream) finish() {
	if s.over.CompareAndSwap(nil, finished) || s.over.CompareAndSwap(sent, finished) {
		return
	}
	<-s.over.Load().unblocked
	_ = http.NewResponseController(s.client).SetWriteDeadline(time.Time{})
}
