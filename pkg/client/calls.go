package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

const (
	pageSize = "500"
	// pollEvery is the interval at which an object in creation is read.
	pollEvery = 500 * time.Millisecond
)

// Option changes a write.
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
func NoWait() Option { return header("Prefer", "respond-async") }

// Tagged has the ETag of an object that was read.
type Tagged struct {
	ETag string `json:"-"`
}

func (t *Tagged) tag(etag string) { t.ETag = etag }

// Doer sends requests, as a Client does.
type Doer interface {
	Do(ctx context.Context, r Request) (*Response, error)
}

// List reads a list, one page after another. The iteration ends after an error.
func List[T any](ctx context.Context, d Doer, r Request) iter.Seq2[T, error] {
	query := url.Values{"limit": {pageSize}}
	maps.Copy(query, r.Query)
	r.Query = query
	return ListWithoutLimit[T](ctx, d, r)
}

// ListWithoutLimit is List for a route that takes no limit on the length of a page.
func ListWithoutLimit[T any](ctx context.Context, d Doer, r Request) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		r := r
		r.Method = http.MethodGet
		query := url.Values{}
		maps.Copy(query, r.Query)
		r.Query = query
		for {
			var page struct {
				Items    []T    `json:"items"`
				Continue string `json:"continue"`
			}
			a, err := d.Do(ctx, r)
			if err == nil {
				err = decode(a, &page)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			query.Set("continue", page.Continue)
		}
	}
}

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

func decode(a *Response, out any) error {
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// call sends a request and decodes the answer.
func call[T any](ctx context.Context, c *Client, r Request, options ...Option) (*T, error) {
	out, _, err := answered[T](ctx, c, r, options...)
	return out, err
}

func answered[T any](ctx context.Context, c *Client, r Request, options ...Option) (*T, *Response, error) {
	for _, option := range options {
		option(&r)
	}
	a, err := c.Do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	out := new(T)
	if err := decode(a, out); err != nil {
		return nil, nil, err
	}
	if t, ok := any(out).(interface{ tag(string) }); ok {
		t.tag(a.Header.Get("ETag"))
	}
	return out, a, nil
}

// do sends a request that is answered without an object.
func (c *Client) do(ctx context.Context, r Request, options ...Option) error {
	for _, option := range options {
		option(&r)
	}
	_, err := c.Do(ctx, r)
	return err
}

// create sends a creation. If the hub answers 202, it reads the object at the request that where
// returns until done reports true.
func create[T any](ctx context.Context, c *Client, r Request, options []Option, where func(*T) Request, done func(*T) bool) (*T, error) {
	r.Method = http.MethodPost
	IdempotencyKey(uuid.NewString())(&r)
	made, a, err := answered[T](ctx, c, r, options...)
	if err != nil || a.Code != http.StatusAccepted || done(made) || asynchronous(options) {
		return made, err
	}
	return await(ctx, c, where(made), done)
}

func asynchronous(options []Option) bool {
	var r Request
	for _, option := range options {
		option(&r)
	}
	return r.Header.Get("Prefer") != ""
}

// await reads an object until done reports true.
func await[T any](ctx context.Context, c *Client, r Request, done func(*T) bool) (*T, error) {
	r.Method = http.MethodGet
	for {
		seen, err := call[T](ctx, c, r)
		var refused *Error
		switch {
		case err == nil && done(seen):
			return seen, nil
		case errors.As(err, &refused) && refused.Code() == http.StatusForbidden:
			// The creator's membership may not be in place yet.
		case err != nil:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}
