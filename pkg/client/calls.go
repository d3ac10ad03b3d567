package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// pollEvery is the interval at which an object in creation is read.
const pollEvery = 500 * time.Millisecond

// Option changes a request.
type Option func(*Request)

func header(name, value string) Option {
	return func(r *Request) {
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set(name, value)
	}
}

// IfMatch makes a write fail with 412 if the object has another ETag.
func IfMatch(etag string) Option { return header(matchHeader, etag) }

// IdempotencyKey makes a creation repeatable: the hub answers the same key with the same object.
func IdempotencyKey(key string) Option { return header(keyHeader, key) }

// NoWait makes a creation return at once, with the object in its phase.
func NoWait() Option {
	return func(r *Request) {
		header("Prefer", "respond-async")(r)
		Once()(r)
	}
}

// Once makes a write return what the hub answers first, when the hub has waited as long as it does.
func Once() Option { return Waiting(func(*Response) bool { return false }) }

// Waiting has f called with each answer that shows that a write is not carried out yet. If f returns
// false, the call returns that answer instead of reading the object again.
func Waiting(f func(*Response) bool) Option { return func(r *Request) { r.waiting = f } }

// Query adds a parameter, such as a filter of a list, unless the value is empty.
func Query(name, value string) Option {
	return func(r *Request) {
		if value == "" {
			return
		}
		if r.Query == nil {
			r.Query = url.Values{}
		}
		r.Query.Set(name, value)
	}
}

// Cascade makes the end of a membership in an organization end those in its workspaces, too.
func Cascade() Option { return Query("cascade", "true") }

// Force makes a global entry take its slug from the organizations that have it.
func Force() Option { return Query("force", "true") }

// Representation makes the answer to a change that takes rights have its receipt.
func Representation() Option { return header("Prefer", "return=representation") }

// Collect reads a list to its end.
func Collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	items := []T{}
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// list reads a list, one page after another. The iteration ends after an error.
func list[T any](ctx context.Context, c *Client, r Request, options ...Option) iter.Seq2[T, error] {
	r.Method = http.MethodGet
	for _, option := range options {
		option(&r)
	}
	return func(yield func(T, error) bool) {
		r := r
		for {
			page, _, err := call[rest.List[json.RawMessage]](ctx, c, r)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, raw := range page.Items {
				item, err := decode[T](&Response{Body: raw})
				if err != nil {
					item = new(T)
				}
				if !yield(*item, err) || err != nil {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			query := url.Values{}
			for name, values := range r.Query {
				query[name] = values
			}
			query.Set("continue", page.Continue)
			r.Query = query
		}
	}
}

// decode reads an answer, which can be without a body.
func decode[T any](a *Response) (*T, error) {
	out := new(T)
	if len(a.Body) > 0 || a.Code == http.StatusOK {
		if err := json.Unmarshal(a.Body, out); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
	}
	if t, ok := any(out).(interface{ Kept() *rest.Answer }); ok {
		*t.Kept() = rest.Answer{ETag: a.Header.Get("ETag"), Code: a.Code, Raw: a.Body}
	}
	return out, nil
}

// call sends a request and decodes the answer.
func call[T any](ctx context.Context, c *Client, r Request, options ...Option) (*T, *Response, error) {
	for _, option := range options {
		option(&r)
	}
	a, err := c.Do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	out, err := decode[T](a)
	return out, a, err
}

// do is call without the response.
func do[T any](ctx context.Context, c *Client, r Request, options ...Option) (*T, error) {
	out, _, err := call[T](ctx, c, r, options...)
	return out, err
}

// export writes a list as the hub sends it in a media type. The request has no method.
func (c *Client) export(ctx context.Context, r Request, mediaType string, to io.Writer, options []Option) error {
	r.Method, r.into = http.MethodGet, to
	for _, option := range append(options, header("Accept", mediaType)) {
		option(&r)
	}
	_, err := c.Do(ctx, r)
	return err
}

// wait sends a write, which is repeatable if it is a POST. If the hub answers 202, it reads the object at the request that where returns
// until done reports true.
func wait[T any](ctx context.Context, c *Client, r Request, options []Option, where func(*T) Request, done func(*T) bool) (*T, error) {
	if r.Method == http.MethodPost {
		IdempotencyKey(uuid.NewString())(&r)
	}
	for _, option := range options {
		option(&r)
	}
	seen, a, err := call[T](ctx, c, r)
	if err != nil || a.Code != http.StatusAccepted {
		return seen, err
	}
	poll := where(seen)
	poll.Method = http.MethodGet
	for !done(seen) && (r.waiting == nil || r.waiting(a)) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
		newer, answer, err := call[T](ctx, c, poll)
		var refused *Error
		if errors.As(err, &refused) && refused.Code() == http.StatusForbidden && poll.made {
			// The creator's membership may not be in place yet.
			continue
		}
		if err != nil {
			return seen, err
		}
		seen, a = newer, answer
	}
	return seen, nil
}
