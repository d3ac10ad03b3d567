package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/keylock"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// writeTimeout limits the time of a write. It continues if its client disconnects, so that it is
// carried out completely or not at all.
const writeTimeout = 30 * time.Second

// Change is a write of a request: its intent goes into the audit log, it is made with the precondition
// of the request, and it is answered when the caches show it.
type Change[T any] struct {
	Intent httpmw.Intent
	// Write makes the change. Its context does not end with the request.
	Write func(ctx context.Context, match Match) (T, error)
	// Refs are the objects that the change affects.
	Refs func(T) []tenancy.Ref
	// Ends are the callers whose right or credential ends if the intent reduces rights, as Streams names them. It is
	// empty for changes that have no receipt.
	Ends []string
	// Seen reports whether the caches show the change. It may replace what is answered.
	Seen func(*T) bool
	// Done, if not nil, is called before the answer.
	Done func(T)
	// View returns the body of the answer and the resource version of its object. If it is nil, the
	// answer is 204. Ended is View for what ends a right. The receipt is nil unless the client asks for it.
	View  func(T) (body any, version string)
	Ended func(T, *rest.Receipt) (body any, version string)
	// Code is the code of the answer if it is not 200, and Late that of an answer that did not wait
	// for the caches to the end.
	Code, Late int
}

// Serve makes the change and answers.
func (c Change[T]) Serve(w http.ResponseWriter, r *http.Request, d *Deps) error {
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := Write(r, c.Intent)
	if err != nil {
		return err
	}
	defer cancel()
	var ending *Ending
	if len(c.Ends) > 0 && c.Intent.Reduces {
		ending = d.Follow(r, c.Ends...)
		defer ending.Close()
	}
	made, err := c.Write(ctx, match)
	if err != nil {
		return err
	}
	code := cmp.Or(c.Code, http.StatusOK)
	if d.Until(r, c.Refs(made), func() bool { return c.Seen(&made) }) {
		ending.HubRefuses()
	} else {
		code = cmp.Or(c.Late, code)
	}
	if c.Done != nil {
		c.Done(made)
	}
	var body any
	var version string
	switch {
	case c.Ended != nil:
		body, version = c.Ended(made, ending.Receipt(w))
	case c.View != nil:
		body, version = c.View(made)
	default:
		return ending.Write(w, false)
	}
	httpapi.Tag(w, version)
	return httpapi.Write(w, code, body)
}

// Unchanged reports whether a patch that changes nothing needs no write: it has no precondition.
func Unchanged(r *http.Request) bool { return len(r.Header.Values("If-Match")) == 0 }

// Write writes the intent of a request to the audit log and returns a context for the change, which
// does not end with the request. The locks that the change takes are those of the caller; a change that
// reduces rights goes ahead of the others. The error refuses the request.
func Write(r *http.Request, intent httpmw.Intent) (context.Context, context.CancelFunc, error) {
	if err := httpmw.Intend(r, intent); err != nil {
		return nil, nil, err
	}
	ctx, cancel := Context(r)
	return keylock.WithCaller(ctx, httpmw.CallerOf(r).Key(), intent.Reduces), cancel, nil
}

// Context returns a context for the steps before a write, or for a dry run. It does not end with
// the request.
func Context(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), writeTimeout)
}
