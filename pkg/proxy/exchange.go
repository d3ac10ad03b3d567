package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

const (
	// retryAfter is the Retry-After of an answer in place of kcp's.
	retryAfter = 2 * time.Second
	// clientGone is the status in logs and metrics of a request that its client gave up.
	clientGone = 499
)

// exchange is what the ReverseProxy's hooks need of one request.
type exchange struct {
	// path is the decoded path at kcp.
	path      string
	requestID string
	// elevation is nil if the request does not use sudo.
	elevation *elevation
	stream    stream
	body      body
	// whole is the body of a request that was read before it is sent, and nil of every other request.
	whole []byte
	// settle says what became of a request that was counted. It is nil for every other one, and once it was said.
	settle func(Outcome)
	// wrote reports a write. It is nil for a read.
	wrote func()
	// plain is true if kcp must not compress the answer.
	plain bool
	// made reports the name of what the request creates. It is nil if the path has the name.
	made func(name string)
	// leave ends the turn of a request that others wait for. It may be called again.
	leave func()
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// body is the body of a request. It records that the client did not send all of it, because
// the transport reports that as a failure of kcp.
type body struct {
	io.ReadCloser
	stream *stream
	// missing is the number of bytes that the client still has to send. It is negative if
	// the request does not tell its length.
	missing int64
	failed  atomic.Bool
}

// Read checks the stream after reading, as guardedBody does, so that kcp never gets the
// whole of a request that was terminated.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.missing -= int64(n)
	switch {
	case errors.Is(err, io.EOF), err == nil && b.missing == 0:
		// The transport writes the last bytes to kcp before it reads the EOF behind them.
		b.stream.state.CompareAndSwap(nil, sent)
	case err != nil:
		b.failed.Store(true)
	}
	if ended := b.stream.ended(); ended != nil {
		return 0, ended
	}
	return n, err
}

// unreachable is the answer for a part of kcp that does not answer.
func unreachable() error {
	return errs.New(errs.Unavailable, "kcp cannot be reached at the moment; try again").After(retryAfter)
}

// upstreamFailed answers a request that kcp did not answer.
func upstreamFailed(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	exchangeOf(ctx).answered(http.StatusBadGateway)
	if ended := exchangeOf(ctx).stream.refusal(w, r); ended != nil {
		httpapi.WriteError(w, r, ended)
		return
	}
	var network net.Error
	var e *errs.Error
	switch {
	case ctx.Err() != nil:
		w.WriteHeader(clientGone)
		return
	case errs.Is(err, errs.Unavailable):
		// The transport reports that kcp is unavailable.
		errors.As(err, &e)
	case exchangeOf(ctx).body.failed.Load():
		e = errs.Wrap(errs.Invalid, err, "the body of the request ended early")
	case errors.As(err, &network) && network.Timeout():
		e = errs.Wrap(errs.Timeout, err, "kcp takes too long to answer; try again").After(retryAfter)
	default:
		e = errs.Wrap(errs.BadGateway, err, "kcp does not answer at the moment; try again").After(retryAfter)
	}
	httpapi.WriteError(w, r, e)
}
