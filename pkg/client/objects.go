package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// Objects has the requests about the objects of one kind in one place. C is the body that makes one
// and U the body that changes one; None stands for a kind of which the API makes or changes none.
type Objects[T, C, U any] struct {
	c *Client
	// r is the request for the list, without a method.
	r Request
	// below is the path of the objects, if that is not below the list.
	below string
	// name is what an object has in its path. It is nil if the API makes none.
	name func(*T) string
	// of adds the tenancy header to a request about an object that is a tenant.
	of func(r *Request, name string)
	// everything are the parameters of a request to delete all.
	everything url.Values
}

// None is the body of a request that the API does not have.
type None struct{}

func segment(s string) string { return "/" + url.PathEscape(s) }

// at returns a request about one object.
func (o Objects[T, C, U]) at(method, name, path string, body any) Request {
	r := o.r
	if o.below != "" {
		r.Path = o.below
	}
	r.Method, r.Path, r.Query, r.Body = method, r.Path+segment(name)+path, nil, body
	if o.of != nil {
		o.of(&r, name)
	}
	return r
}

// List lists the objects.
func (o Objects[T, C, U]) List(ctx context.Context, options ...Option) iter.Seq2[T, error] {
	return list[T](ctx, o.c, o.r, append([]Option{Query("limit", "500")}, options...)...)
}

// Get returns an object.
func (o Objects[T, C, U]) Get(ctx context.Context, name string, options ...Option) (*T, error) {
	return do[T](ctx, o.c, o.at(http.MethodGet, name, "", nil), options...)
}

// Create makes an object. It returns when the object is ready.
func (o Objects[T, C, U]) Create(ctx context.Context, body C, options ...Option) (*T, error) {
	r := o.r
	r.Method, r.Body = http.MethodPost, body
	return wait(ctx, o.c, r, options, func(made *T) Request {
		poll := o.at(http.MethodGet, o.name(made), "", nil)
		poll.made = o.of != nil
		return poll
	}, ready)
}

// ready reports whether an object that was read is complete.
func ready[T any](made *T) bool {
	var is struct {
		Phase string `json:"phase"`
	}
	kept, ok := any(made).(interface{ JSON() []byte })
	return !ok || json.Unmarshal(kept.JSON(), &is) != nil || is.Phase == rest.PhaseReady
}

// Update changes an object.
func (o Objects[T, C, U]) Update(ctx context.Context, name string, change U, options ...Option) (*T, error) {
	return do[T](ctx, o.c, o.at(http.MethodPatch, name, "", change), options...)
}

// Replace replaces what an object says.
func (o Objects[T, C, U]) Replace(ctx context.Context, name string, body C, options ...Option) (*T, error) {
	return do[T](ctx, o.c, o.at(http.MethodPut, name, "", body), options...)
}

// Delete deletes an object, or requests that. The result has what the hub answered, which can be
// nothing but a code: 202 if the deletion is still being carried out.
func (o Objects[T, C, U]) Delete(ctx context.Context, name string, options ...Option) (*T, error) {
	return do[T](ctx, o.c, o.at(http.MethodDelete, name, "", nil), options...)
}

// End is Delete of what gives rights, with the receipt. The receipt is empty but for its code if the hub
// gives none.
func (o Objects[T, C, U]) End(ctx context.Context, name string, options ...Option) (*rest.Receipt, error) {
	return do[rest.Receipt](ctx, o.c, o.at(http.MethodDelete, name, "", nil), append(options, Representation())...)
}

// EndAll is End of all objects.
func (o Objects[T, C, U]) EndAll(ctx context.Context, options ...Option) (*rest.Receipt, error) {
	r := o.r
	r.Method, r.Query = http.MethodDelete, o.everything
	return do[rest.Receipt](ctx, o.c, r, append(options, Representation())...)
}
