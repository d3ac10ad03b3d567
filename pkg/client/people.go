package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

const (
	mePath       = "/api/users/me"
	sessionsPath = mePath + "/sessions"
)

func segment(s string) string { return "/" + url.PathEscape(s) }

// Me returns the caller.
func (c *Client) Me(ctx context.Context) (*Person, error) {
	return call[Person](ctx, c, Request{Method: http.MethodGet, Path: mePath})
}

// RenameMe changes the caller's display name.
func (c *Client) RenameMe(ctx context.Context, displayName string, options ...Option) (*Person, error) {
	return call[Person](ctx, c, Request{Method: http.MethodPatch, Path: mePath, Body: named(displayName)}, options...)
}

func named(displayName string) any { return map[string]string{"displayName": displayName} }

// Memberships lists the caller's memberships, with those in deleted tenants if deleted is true.
func (c *Client) Memberships(ctx context.Context, deleted bool) iter.Seq2[Membership, error] {
	r := Request{Path: mePath + "/memberships"}
	if deleted {
		r.Query = url.Values{"deleted": {"true"}}
	}
	return ListWithoutLimit[Membership](ctx, c, r)
}

// SearchPeople finds people by a part of their name, of at least two characters.
func (c *Client) SearchPeople(ctx context.Context, query string) iter.Seq2[FoundPerson, error] {
	return List[FoundPerson](ctx, c, Request{Path: "/api/users", Query: url.Values{"q": {query}}})
}

// DeletePerson requests the deletion of an account. The name me is the caller; other names are for
// platform admins.
func (c *Client) DeletePerson(ctx context.Context, name string, options ...Option) (*DeletedPerson, error) {
	return call[DeletedPerson](ctx, c, Request{Method: http.MethodDelete, Path: "/api/users" + segment(name)}, options...)
}

// UndeletePerson withdraws the request.
func (c *Client) UndeletePerson(ctx context.Context, name string) (*DeletedPerson, error) {
	return call[DeletedPerson](ctx, c, Request{Method: http.MethodPost, Path: "/api/users" + segment(name) + "/undelete"})
}

// Sessions lists the caller's logins.
func (c *Client) Sessions(ctx context.Context) iter.Seq2[Session, error] {
	return List[Session](ctx, c, Request{Path: sessionsPath})
}

// EndSession ends one of the caller's logins.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.do(ctx, Request{Method: http.MethodDelete, Path: sessionsPath + segment(id)})
}

// EndAllSessions signs the caller out everywhere. Tokens issued before are refused, too.
func (c *Client) EndAllSessions(ctx context.Context) error {
	return c.do(ctx, Request{Method: http.MethodDelete, Path: sessionsPath, Query: url.Values{"all": {"true"}}})
}
