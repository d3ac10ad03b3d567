package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// ErrFenced says that a write was refused, or cut off, because this process has
// lost the right to write: another replica may lead by now.
var ErrFenced = errors.New("the right to write has ended")

// look is how often it is asked whether a write may go on. Its deadline alone does not
// do: timers may stand still while the machine is suspended.
const look = 100 * time.Millisecond

// Right returns until when this process may write for sure, or an error where it may
// not. The zero time is no end. A time must carry its monotonic reading.
type Right func() (until time.Time, err error)

// fence returns a layer that asks for the right before every POST, PUT, PATCH and
// DELETE, again when there is a connection for it, before its body is sent, and over and
// over until it is answered; where it returns an error, nothing more is sent, and the
// caller gets an ErrFenced. Otherwise it says until when the right lasts for sure, which
// is when the request is given up at the latest.
func fence(right Right) layer {
	return func(next http.RoundTripper) http.RoundTripper { return gate{next: next, right: right} }
}

func mutating(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// gate lets writes with a condition through while it holds. It is the one place
// that all of them pass, next to the wire.
type gate struct {
	next  http.RoundTripper
	right Right
}

func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if !mutating(r.Method) {
		return g.next.RoundTrip(r)
	}
	until, err := g.right()
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("%w: %w", ErrFenced, err)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	end := func() { cancel(nil) }
	check := func() error {
		if _, err := g.right(); err != nil {
			err = fmt.Errorf("%w: %w", ErrFenced, err)
			cancel(err)
			return err
		}
		return nil
	}
	if !until.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, until, ErrFenced)
		end = func() { stop(); cancel(nil) }
		go observe(ctx, check)
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { _ = check() }})
	response, err := g.next.RoundTrip(guard(r.WithContext(ctx), check))
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrFenced) && !errors.Is(err, ErrFenced) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		end()
		return nil, err
	}
	response.Body = &held{ReadCloser: response.Body, end: end}
	return response, nil
}

// observe asks until it fails or ctx ends.
func observe(ctx context.Context, check func() error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if check() != nil {
				return
			}
		}
	}
}

// guard makes the request's body ask before it gives anything away. A body that
// fails ends the request: kcp does not act on a part of one.
func guard(r *http.Request, check func() error) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	r.Body = guarded{ReadCloser: r.Body, check: check}
	if again := r.GetBody; again != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return guarded{ReadCloser: body, check: check}, nil
		}
	}
	return r
}

type guarded struct {
	io.ReadCloser
	check func() error
}

func (g guarded) Read(p []byte) (int, error) {
	if err := g.check(); err != nil {
		return 0, err
	}
	return g.ReadCloser.Read(p)
}

// held is the answer's body; the request's context lives as long as it.
type held struct {
	io.ReadCloser
	end func()
}

func (h *held) Close() error {
	defer h.end()
	return h.ReadCloser.Close()
}
