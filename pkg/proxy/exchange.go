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
	// retryAfter is what a client is told to wait when kcp does not answer.
	retryAfter = 2 * time.Second
	// clientGone is the status, for log and metrics alone, of a request whose
	// client did not wait for the answer.
	clientGone = 499
)

// exchange is one request on its way to kcp.
type exchange struct {
	// path is where it goes, decoded.
	path      string
	requestID string
	// elevation is nil for a request without sudo.
	elevation *elevation
	stream    stream
	body      body
	// wrote tells that a write is done; nil for what is none.
	wrote func()
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// body is what the client sends. It remembers that the client did not send all of
// it, which the transport reports as a failure to speak to kcp.
type body struct {
	io.ReadCloser
	stream *stream
	failed atomic.Bool
}

// Read asks after reading, as guardedBody does: what comes behind the end of the
// stream goes nowhere, and kcp gets no whole request.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.stream.over.CompareAndSwap(nil, sent)
	case err != nil:
		b.failed.Store(true)
	}
	if ended := b.stream.ended(); ended != nil {
		return 0, ended
	}
	return n, err
}

// upstreamFailed answers for kcp where it gave no answer.
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
		// The transport knows that kcp is gone.
		errors.As(err, &e)
	case exchangeOf(ctx).body.failed.Load():
		e = errs.Wrap(errs.Invalid, err, "the body of the request ended early")
	case errors.As(err, &network) && network.Timeout():
		e = errs.Wrap(errs.Timeout, err, "kcp takes too long to answer; try again")
		e.RetryAfter = retryAfter
	default:
		e = errs.Wrap(errs.BadGateway, err, "kcp does not answer at the moment; try again")
		e.RetryAfter = retryAfter
	}
	httpapi.WriteError(w, r, e)
}
