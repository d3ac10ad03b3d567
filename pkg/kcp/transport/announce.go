package transport

import (
	"context"
	"net/http"
)

// announce returns a layer that calls a func before every request that may write.
func announce(before func(context.Context)) layer {
	return func(next http.RoundTripper) http.RoundTripper { return announced{next: next, before: before} }
}

type announced struct {
	next   http.RoundTripper
	before func(context.Context)
}

// RoundTrip implements http.RoundTripper. The reviews of kcp write nothing.
func (a announced) RoundTrip(r *http.Request) (*http.Response, error) {
	if mutating(r.Method) && (r.Method != http.MethodPost || creates(r)) {
		a.before(r.Context())
	}
	return a.next.RoundTrip(r)
}
