package server

import (
	"context"
	"crypto/rand"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// login returns the handler of /auth. tokens authenticates ID tokens as for every other request.
func (a *assembly) login(people httpmw.Authentication, tokens auth.Authenticator, counted *login.Metrics) *login.Handler {
	c := a.hub.config
	h := &login.Handler{
		Sessions: a.sessions, Devices: a.sessions, KeepGrant: a.sessions.KeepGrant, Keyring: a.keyring,
		SignUp: people.UserOf, Owner: a.ownerOf, Metrics: counted,
		Audit: func(r *http.Request, e login.Event) error {
			by := audit.Actor{Kind: audit.ActorPerson, User: e.User, Issuer: e.Issuer}
			if e.User == "" {
				by.Kind = audit.ActorAnonymous
			}
			return a.auditor.Record(r.Context(), audit.Event{Stage: e.Stage, Actor: by, Action: e.Action, Code: e.Code})
		},
		Peer:      func(r *http.Request) string { return httpmw.Peer(r).String() },
		Available: a.available.Wait, Limit: a.hub.limits.Logins(c.Limits.LoginsPerPeer, c.Limits.Logins),
		LimitDevices: a.hub.limits.DeviceLogins(c.Limits.DeviceLoginsPerPeer, c.Limits.DeviceLogins),
		NewSecret:    func() string { return rand.Text() + rand.Text() },
		Clock:        a.clock, ExternalURL: c.ExternalURL,
	}
	if a.oidc != nil {
		h.Provider = loginProvider{a.oidc, tokens}
	}
	if a.static != nil {
		h.StaticTokens = func(ctx context.Context, token string) (*auth.Identity, bool, error) {
			id, ok, err := people.Tokens.Authenticate(ctx, token)
			return id, ok && id.Issuer == auth.StaticIssuer, err
		}
	}
	return h
}

// ownerOf returns the User and the client of the session of a secret or a cookie.
func (a *assembly) ownerOf(secret string) (user string, client v1alpha1.SessionClient, ok bool) {
	name, ok := a.keyring.PortalSession(secret)
	if !ok {
		name, ok = a.keyring.CLISession(secret)
	}
	if !ok {
		return "", "", false
	}
	s, ok := a.views.Session(name)
	if !ok {
		return "", "", false
	}
	return s.Spec.UserRef.Name, s.Spec.Client, true
}

// loginProvider is the issuer. Nobody signs up with a token from which kcp derives another
// username.
type loginProvider struct {
	*auth.OIDC
	tokens auth.Authenticator
}

// Exchange redeems a code and authenticates the ID token as a request with it would be.
func (p loginProvider) Exchange(ctx context.Context, code string, l auth.LoginRequest) (*auth.Grant, error) {
	grant, err := p.OIDC.Exchange(ctx, code, l)
	if err != nil {
		return nil, err
	}
	_, ok, err := p.tokens.Authenticate(ctx, grant.IDToken)
	if err == nil && !ok {
		err = errs.New(errs.Unauthenticated, "the ID token of the identity provider is not known here")
	}
	if err != nil {
		return nil, err
	}
	return grant, nil
}
