package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// ErrGrantRefused means that the issuer refuses a code or a refresh token for good. Errors of
// the network, of the issuer itself and of the hub's own client are errs.Unavailable instead:
// they say nothing about the grant.
var ErrGrantRefused = errors.New("the identity provider refuses the grant")

// LoginRequest is one login of a person at the issuer.
type LoginRequest struct {
	// RedirectURI is where the issuer sends the browser back to.
	RedirectURI string
	// State is returned by the issuer, and Nonce is in the ID token: they bind the answer to
	// the browser.
	State string
	Nonce string
	// Verifier is the PKCE code verifier. The issuer gets its S256 challenge first.
	Verifier string
}

// Grant is what the issuer gives for a code or a refresh token.
type Grant struct {
	// IDToken is the verified ID token. Identity is what it proves; Sessions know the token by
	// Identity.Credential.
	IDToken  string
	Identity *Identity
	// RefreshToken is the refresh token to use next. It is empty if the issuer gave none.
	RefreshToken string
}

// AuthCodeURL returns the URL at the issuer that begins a login.
func (o *OIDC) AuthCodeURL(_ context.Context, l LoginRequest) (string, error) {
	config, err := o.oauth2(l.RedirectURI)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(l.State, oauth2.SetAuthURLParam("nonce", l.Nonce), oauth2.S256ChallengeOption(l.Verifier)), nil
}

// Exchange redeems the code of a login and verifies the ID token and its nonce.
func (o *OIDC) Exchange(ctx context.Context, code string, l LoginRequest) (*Grant, error) {
	config, err := o.oauth2(l.RedirectURI)
	if err != nil {
		return nil, err
	}
	if l.Nonce == "" {
		return nil, errors.New("a login has a nonce")
	}
	token, err := config.Exchange(o.clientContext(ctx), code, oauth2.VerifierOption(l.Verifier))
	if err != nil {
		return nil, grantError(err)
	}
	return o.grant(ctx, token, l.Nonce)
}

// Login is the client of an issuer for logins. Nobody logs in with an ID token that a request with it
// would be refused for, such as one from which kcp derives another username.
type Login struct {
	*OIDC
	// Tokens authenticates ID tokens as for every other request.
	Tokens Authenticator
}

// Exchange redeems a code and authenticates the ID token.
func (l Login) Exchange(ctx context.Context, code string, r LoginRequest) (*Grant, error) {
	grant, err := l.OIDC.Exchange(ctx, code, r)
	if err != nil {
		return nil, err
	}
	_, ok, err := l.Tokens.Authenticate(ctx, grant.IDToken)
	if err == nil && !ok {
		err = errs.New(errs.Unauthenticated, "the ID token of the identity provider is not known here")
	}
	if err != nil {
		return nil, err
	}
	return grant, nil
}

// Refresh exchanges a refresh token. The caller compares the Identity with the one of the
// login: this method does not know it. If the issuer has answered but its ID token is not
// accepted, the method returns an error together with a Grant that has only the next refresh
// token, because the issuer may have ended the presented one.
func (o *OIDC) Refresh(ctx context.Context, refreshToken string) (*Grant, error) {
	config, err := o.oauth2("")
	if err != nil {
		return nil, err
	}
	token, err := config.TokenSource(o.clientContext(ctx), &oauth2.Token{RefreshToken: refreshToken}).Token()
	if err != nil {
		return nil, grantError(err)
	}
	g, err := o.grant(ctx, token, "")
	if err != nil {
		return &Grant{RefreshToken: token.RefreshToken}, err
	}
	return g, nil
}

func (o *OIDC) oauth2(redirectURI string) (*oauth2.Config, error) {
	p := o.provider.Load()
	if p == nil {
		return nil, providerUnavailable(errNotReached)
	}
	endpoint, secret := p.endpoint, *o.secret.Load()
	if secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: o.config.ClientID, ClientSecret: secret,
		Endpoint: endpoint, RedirectURL: redirectURI, Scopes: o.config.Scopes,
	}, nil
}

func (o *OIDC) clientContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, o.client.Load())
}

func (o *OIDC) grant(ctx context.Context, token *oauth2.Token, nonce string) (*Grant, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, fmt.Errorf("%w: its answer has no ID token", ErrGrantRefused)
	}
	id, _, err := o.verify(ctx, raw, nonce, true)
	if errors.Is(err, errOtherIssuer) {
		err = invalid("it is of another issuer")
	}
	if err != nil {
		return nil, err
	}
	return &Grant{IDToken: raw, Identity: id, RefreshToken: token.RefreshToken}, nil
}

// grantError distinguishes a refusal of the grant from transient failures. It does not wrap the
// library's error, which quotes the answer and possibly the request.
func grantError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return providerUnavailable(errors.New("the identity provider does not answer"))
	}
	code := 0
	if refused.Response != nil {
		code = refused.Response.StatusCode
	}
	switch refused.ErrorCode {
	case "", "invalid_client", "server_error", "slow_down", "temporarily_unavailable":
	default:
		if code != http.StatusTooManyRequests && code < http.StatusInternalServerError {
			return fmt.Errorf("%w: %.64q", ErrGrantRefused, refused.ErrorCode)
		}
	}
	return providerUnavailable(fmt.Errorf("the identity provider answers %d %.64q", code, refused.ErrorCode))
}

func providerUnavailable(err error) error {
	return errs.Wrap(errs.Unavailable, err, "the identity provider cannot be asked at the moment; try again").After(time.Second)
}
