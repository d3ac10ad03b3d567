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

// ErrFenced says that a write was refused, or cut off, because this process has lost
// the right to write: another replica may lead by now.
var ErrFenced = errors.New("the right to write has ended")

// Right returns until when this process may write for sure, or an error where it may
// not. The zero time is no end. A time must carry its monotonic reading.
type Right func() (until time.Time, err error)

// recheck is how often the right of a running write is asked. A deadline alone is not
// enough: timers may stand still while the machine is suspended.
const recheck = 100 * time.Millisecond

// fence returns a layer that asks for the right before every POST, PUT, PATCH and
// DELETE: before it is sent, when there is a connection for it, before its body is
// sent, and repeatedly until it is answered. Where the right is denied nothing more is
// sent, and the caller gets ErrFenced. A request is given up when its right ends.
func fence(right Right) layer {
	return func(next http.RoundTripper) http.RoundTripper { return fenced{next: next, right: right} }
}

func mutating(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

type fenced struct {
	next  http.RoundTripper
	right Right
}

func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if !mutating(r.Method) {
		return f.next.RoundTrip(r)
	}
	until, err := f.right()
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("%w: %w", ErrFenced, err)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	end := func() { cancel(nil) }
	check := func() error {
		if _, err := f.right(); err != nil {
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
		go checkRepeatedly(ctx, check)
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { _ = check() }})
	response, err := f.next.RoundTrip(checkBody(r.WithContext(ctx), check))
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrFenced) && !errors.Is(err, ErrFenced) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		end()
		return nil, err
	}
	response.Body = &endingBody{ReadCloser: response.Body, end: end}
	return response, nil
}

// checkRepeatedly checks until the check fails or ctx ends.
func checkRepeatedly(ctx context.Context, check func() error) {
	ticker := time.NewTicker(recheck)
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

// checkBody makes the request's body check the right before each read. A body that
// fails ends the request: kcp does not act on a part of one.
func checkBody(r *http.Request, check func() error) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	r.Body = checkedBody{ReadCloser: r.Body, check: check}
	if getBody := r.GetBody; getBody != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			body, err := getBody()
			if err != nil {
				return nil, err
			}
			return checkedBody{ReadCloser: body, check: check}, nil
		}
	}
	return r
}

type checkedBody struct {
	io.ReadCloser
	check func() error
}

func (b checkedBody) Read(p []byte) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
