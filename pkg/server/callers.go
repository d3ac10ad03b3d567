package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/store"
)

// callers makes clients of kcp that act as the caller of a request. kcp itself then asks
// whether the caller may: the hub adds none of its own rights.
type callers struct {
	// kcp has no credential of its own.
	kcp *kcp.Clients
	// idToken returns the ID token of a Session of the portal.
	idToken func(ctx context.Context, session string) (string, error)
	// staticToken returns the static token that a session of the portal began with. It is nil
	// if no session did.
	staticToken func(credential string) (token string, ok bool)
}

// callers returns what makes clients that act as callers.
func (a *assembly) callers() (callers, error) {
	anonymous, err := a.clients.FailFast().Fenced(a.disk.WriteRight).Anonymous()
	c := callers{kcp: anonymous, idToken: a.sessions.IDToken}
	if a.static != nil {
		c.staticToken = a.static.TokenOfSession
	}
	return c, err
}

// bindings returns what writes APIBindings as the caller of a request: with the bearer token
// of the request or, for the portal's cookie, with the ID token of its Session or the static
// token that it began with.
func (c callers) bindings(r *http.Request) (store.Bindings, error) {
	caller := httpmw.CallerOf(r)
	if !caller.ByCookie() {
		token, err := httpmw.BearerToken(r)
		return store.NewBindings(c.kcp.WithToken(token)), err
	}
	if c.staticToken != nil && caller.Identity.Issuer == auth.StaticIssuer {
		if token, ok := c.staticToken(caller.Identity.Credential); ok {
			return store.NewBindings(c.kcp.WithToken(token)), nil
		}
	}
	token, err := c.idToken(r.Context(), caller.Session)
	var refusal *session.Error
	if errors.As(err, &refusal) {
		err = errs.Wrap(errs.Unauthenticated, err, refusal.Description)
	}
	return store.NewBindings(c.kcp.WithToken(token)), err
}
