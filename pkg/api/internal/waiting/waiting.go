package waiting

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// writeTimeout bounds a write whose caller went away: it is whole or nothing.
const writeTimeout = 30 * time.Second

// follow is how long a write that has happened waits for the views. A view that
// is later than that is a fault that shows elsewhere; the write stands.
const follow = 5 * time.Second

// Write returns a context for a write, which does not end with the request.
func Write(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), writeTimeout)
}

// Follow returns a context for waiting until a write can be read.
func Follow(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), follow)
}

// Async tells whether the caller does not want to wait until something made is
// ready (RFC 7240, Prefer: respond-async).
func Async(r *http.Request) bool {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}
