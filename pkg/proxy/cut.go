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

// parting is how long the client of a watch that was cut has to take what is on
// its way to it already.
const parting = 500 * time.Millisecond

// stream is an answer that does not end by itself.
type stream struct {
	at place
	// opened is the right that it was opened with, Sudo only where it uses that.
	opened tenancy.Entry
	// cancel ends the request to kcp.
	cancel   context.CancelFunc
	over     atomic.Pointer[ending]
	upgraded atomic.Bool
}

// ending is why a stream was ended.
type ending struct {
	// cause is the answer to a client who has none yet.
	cause error
	// learned is when the hub learned that the right had ended; zero where it did
	// not.
	learned time.Time
}

// end ends a stream, once. Nothing that is read from kcp afterwards goes to the
// client, nor the other way; end waits for neither.
func (s *stream) end(e *ending) {
	if s.over.CompareAndSwap(nil, e) {
		s.cancel()
	}
}

// ended is the cause why the stream was ended; nil where it was not, or is none.
func (s *stream) ended() error {
	if s == nil {
		return nil
	}
	if e := s.over.Load(); e != nil {
		return e.cause
	}
	return nil
}

// Recheck ends the open streams of a person, of everybody where user is empty,
// whose right has ended or is less than they were opened with. It is called
// behind every change of what Enter says, reads memory only and waits for no
// client; when it returns, nothing that kcp sends goes to an ended stream's
// client any more.
func (p *Proxy) Recheck(user string) {
	learned := time.Now()
	for at, open := range p.streams.of(user) {
		p.recheck(at, learned, open...)
	}
}

// Unbound ends the open streams of a person in a logical cluster where kcp has taken
// away a ClusterRole that the gate does not give them any more: kcp may have let some
// in with it since they were looked at last, and nothing tells which. It does not
// wait, as Recheck does not.
func (p *Proxy) Unbound(user, cluster, clusterRole string) {
	learned := time.Now()
	if now, err := p.config.Enter(user, cluster); err == nil && now.Gives(clusterRole) {
		return
	}
	for at, open := range p.streams.of(user) {
		if at.cluster != cluster {
			continue
		}
		for _, s := range open {
			s.end(&ending{cause: rightEnded(), learned: learned})
		}
	}
}

func (p *Proxy) recheck(at place, learned time.Time, open ...*stream) {
	now, err := p.config.Enter(at.user, at.cluster)
	for _, s := range open {
		if errs.Is(err, errs.Unavailable) {
			// Whether there is a right still, nobody can tell at the moment.
			s.end(&ending{cause: err})
			continue
		}
		if err != nil || !now.Covers(s.opened) {
			s.end(&ending{cause: rightEnded(), learned: learned})
		}
	}
}

func rightEnded() error {
	return errs.New(errs.Forbidden,
		"your right to this workspace ended, or became less, while the request was open; ask an admin of the workspace or of its organization, or repeat the request with the rights that you still have")
}

// guard puts the stream between kcp's answer and the client. It fails where the
// stream has ended before the answer began.
func (s *stream) guard(r *http.Response) error {
	if s == nil {
		return nil
	}
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		s.upgraded.Store(true)
		r.Body = &guardedConn{conn, s}
	} else {
		r.Body = &guardedBody{r.Body, s}
	}
	return s.ended()
}

// guardedBody is an answer that ends well when its stream is ended: clients of a
// watch then list again, and are told there why they may not.
type guardedBody struct {
	io.ReadCloser
	stream *stream
}

// Read asks after reading: what was read came before the end of the stream then.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.stream.ended() != nil {
		return 0, io.EOF
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
// reads nor writes. stop must be called before the handler returns.
func (s *stream) unblock(ctx context.Context, control *http.ResponseController, hasBody bool) (stop func()) {
	done := make(chan struct{})
	unset := context.AfterFunc(ctx, func() {
		defer close(done)
		switch now := time.Now(); {
		case s.ended() == nil:
			// It is the client who has gone.
		case s.upgraded.Load():
			_ = control.SetReadDeadline(now)
			_ = control.SetWriteDeadline(now)
		default:
			if hasBody {
				_ = control.SetReadDeadline(now)
			}
			_ = control.SetWriteDeadline(now.Add(parting))
		}
	})
	return func() {
		if !unset() {
			<-done
			// The connection may have other requests to come.
			_ = control.SetWriteDeadline(time.Time{})
		}
	}
}
