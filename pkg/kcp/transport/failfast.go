package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Bind returns a RoundTripper whose requests, and their answers, end when kcp becomes
// unavailable. They fail with an *errs.Error then, and also where no connection can be
// made or an answer breaks off.
func (h *Health) Bind(next http.RoundTripper) http.RoundTripper { return failFast{next, h} }

type failFast struct {
	next   http.RoundTripper
	health *Health
}

func (f failFast) RoundTrip(r *http.Request) (*http.Response, error) {
	live, _ := f.health.now()
	if live.Err() != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, unavailable(ErrUnavailable)
	}
	ctx, cancel := context.WithCancel(r.Context())
	unbind := context.AfterFunc(live, cancel)
	response, err := f.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		unbind()
		cancel()
		var dial *net.OpError
		if r.Context().Err() == nil && (live.Err() != nil || errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect")) {
			return nil, unavailable(err)
		}
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The body is a connection, which its holder closes.
		unbind()
		return response, nil
	}
	response.Body = &failFastBody{endingBody{ReadCloser: response.Body, end: func() { unbind(); cancel() }}}
	return response, nil
}

// failFastBody is an answer's body that tells a broken answer from one that the caller
// has given up.
type failFastBody struct{ endingBody }

func (b *failFastBody) Read(p []byte) (int, error) {
	n, err := b.endingBody.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unavailable(fmt.Errorf("kcp's answer broke off: %w", err))
	}
	return n, err
}

// endingBody is an answer's body; the context of the request ends when it is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
