package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

const redirectURI = "https://hub.example/auth/callback"

func loginRequest() auth.LoginRequest {
	return auth.LoginRequest{RedirectURI: redirectURI, State: "state", Nonce: "nonce", Verifier: strings.Repeat("v", 43)}
}

// authorize logs a person in at the issuer and returns the code.
func (i *issuer) authorize(t *testing.T, l auth.LoginRequest) string {
	t.Helper()
	at, err := i.AuthCodeURL(t.Context(), l)
	require.NoError(t, err)
	response, err := i.Client().Get(at)
	require.NoError(t, err)
	_ = response.Body.Close()
	back, err := response.Location()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(back.String(), redirectURI+"?"))
	require.Equal(t, l.State, back.Query().Get("state"))
	return back.Query().Get("code")
}

func TestAuthCodeURL_hasStateNonceAndChallenge(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *auth.OIDCConfig) { c.Scopes = []string{"openid", "email"} }).run(t)
	at, err := i.AuthCodeURL(t.Context(), loginRequest())
	require.NoError(t, err)
	u, err := url.Parse(at)
	require.NoError(t, err)
	query := u.Query()
	require.Equal(t, i.URL()+oidctest.AuthPath, u.Scheme+"://"+u.Host+u.Path)
	for name, want := range map[string]string{
		"client_id": oidctest.ClientID, "response_type": "code", "scope": "openid email", "redirect_uri": redirectURI,
		"state": "state", "nonce": "nonce", "code_challenge_method": "S256",
	} {
		require.Equal(t, want, query.Get(name), name)
	}
	require.Len(t, query.Get("code_challenge"), 43)
	require.NotContains(t, at, loginRequest().Verifier)
}

func TestExchange_returnsAVerifiedGrant(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	l := loginRequest()
	code := i.authorize(t, l)
	i.Rotate() // the issuer itself sends the token, so no cool-down delays its new key
	g, err := i.Exchange(t.Context(), code, l)
	require.NoError(t, err)
	require.Equal(t, "alice", g.Identity.Subject)
	require.NotEmpty(t, g.RefreshToken)
	id, ok, err := i.Authenticate(t.Context(), g.IDToken)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, id.Credential, g.Identity.Credential)

	_, err = i.Exchange(t.Context(), code, l)
	require.ErrorIs(t, err, auth.ErrGrantRefused, "a code works once")
	require.NotContains(t, err.Error(), code)
}

func TestExchange_refusesTheAnswerToAnotherLogin(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	for name, change := range map[string]func(*auth.LoginRequest){
		"another nonce":    func(l *auth.LoginRequest) { l.Nonce = "other" },
		"no nonce":         func(l *auth.LoginRequest) { l.Nonce = "" },
		"another verifier": func(l *auth.LoginRequest) { l.Verifier = strings.Repeat("w", 43) },
		"another redirect": func(l *auth.LoginRequest) { l.RedirectURI += "2" },
	} {
		l := loginRequest()
		code := i.authorize(t, l)
		change(&l)
		_, err := i.Exchange(t.Context(), code, l)
		require.Error(t, err, name)
		require.False(t, errs.Is(err, errs.Unavailable), name)
	}
	l := loginRequest()
	_, err := i.Exchange(t.Context(), i.authorize(t, l), l)
	require.NoError(t, err)
}

func TestExchange_sendsTheSecretOfAConfidentialClient(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t, oidctest.Options{ClientSecret: "hush & secret"})
	change := func(secret string) func(*auth.OIDCConfig) {
		return func(c *auth.OIDCConfig) { c.IssuerURL, c.CA, c.ClientSecret = p.URL(), p.CA(), secret }
	}
	l := loginRequest()
	good := newIssuer(t, change("hush & secret"))
	good.Provider = p
	good.clock.SetTime(time.Now())
	good.run(t)
	_, err := good.Exchange(t.Context(), good.authorize(t, l), l)
	require.NoError(t, err)
	bad := newIssuer(t, change("other"))
	bad.Provider = p
	bad.clock.SetTime(time.Now())
	bad.run(t)
	_, err = bad.Exchange(t.Context(), bad.authorize(t, l), l)
	require.True(t, errs.Is(err, errs.Unavailable), "a wrong secret of the hub ends no session: %v", err)
	bad.SetClientSecret("hush & secret")
	_, err = bad.Exchange(t.Context(), bad.authorize(t, l), l)
	require.NoError(t, err, "the secret is replaced")
}

func TestSetCA_replacesTheTrustInTheIssuer(t *testing.T) {
	t.Parallel()
	p, other := oidctest.New(t, oidctest.Options{}), oidctest.New(t, oidctest.Options{})
	i := newIssuer(t, func(c *auth.OIDCConfig) { c.IssuerURL, c.CA = p.URL(), nil })
	require.ErrorContains(t, i.Reach(t.Context()), "certificate")
	require.Error(t, i.SetCA([]byte("no certificate")))
	require.NoError(t, i.SetCA(append(other.CA(), p.CA()...)))
	require.NoError(t, i.Reach(t.Context()))
}

func TestRefresh_rotatesTheGrant(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	l := loginRequest()
	first, err := i.Exchange(t.Context(), i.authorize(t, l), l)
	require.NoError(t, err)
	second, err := i.Refresh(t.Context(), first.RefreshToken)
	require.NoError(t, err)
	require.NotEqual(t, first.RefreshToken, second.RefreshToken)
	require.NotEqual(t, first.IDToken, second.IDToken)
	require.Equal(t, first.Identity.Subject, second.Identity.Subject)
	_, err = i.Refresh(t.Context(), first.RefreshToken)
	require.ErrorIs(t, err, auth.ErrGrantRefused, "Dex answers invalid_request to a superseded token")
	require.NotContains(t, err.Error(), first.RefreshToken)
	_, err = i.Refresh(t.Context(), second.RefreshToken)
	require.NoError(t, err)
}

// The issuer rotates its keys and cannot be asked for the new one: the grant is not lost.
func TestRefresh_returnsTheNextTokenOfAnUnverifiedGrant(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	l := loginRequest()
	first, err := i.Exchange(t.Context(), i.authorize(t, l), l)
	require.NoError(t, err)
	i.Rotate()
	i.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != oidctest.KeysPath {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	g, err := i.Refresh(t.Context(), first.RefreshToken)
	require.True(t, errs.Is(err, errs.Unavailable), err)
	require.Empty(t, g.IDToken)
	require.Nil(t, g.Identity)
	i.Intercept(nil)
	_, err = i.Refresh(t.Context(), g.RefreshToken)
	require.NoError(t, err)
}

func TestRefresh_tellsARefusalFromAFault(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil).run(t)
	answer := func(code int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != oidctest.TokenPath {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body)
			return true
		}
	}
	for body, refused := range map[string]bool{
		`400 {"error":"invalid_grant"}`:           true,
		`400 {"error":"invalid_request"}`:         true,
		`400 {"error":"unauthorized_client"}`:     true,
		`403 {"error":"access_denied"}`:           true,
		`401 {"error":"invalid_client"}`:          false,
		`429 {"error":"invalid_grant"}`:           false,
		`429 {}`:                                  false,
		`404 not found`:                           false,
		`500 {"error":"invalid_grant"}`:           false,
		`502 bad gateway`:                         false,
		`503 {"error":"temporarily_unavailable"}`: false,
		`200 {"access_token":"a"}`:                true,
		`200 not json`:                            false,
		`302 {}`:                                  false,
	} {
		var code int
		_, err := fmt.Sscan(body[:3], &code)
		require.NoError(t, err)
		i.Intercept(answer(code, body[4:]))
		_, err = i.Refresh(t.Context(), "secret-refresh-token")
		require.Error(t, err, body)
		require.Equal(t, refused, errors.Is(err, auth.ErrGrantRefused), body)
		require.Equal(t, !refused, errs.Is(err, errs.Unavailable), body)
		require.NotContains(t, err.Error(), "secret-refresh-token")
	}
	i.SetDown(true)
	_, err := i.Refresh(t.Context(), "secret-refresh-token")
	require.True(t, errs.Is(err, errs.Unavailable))
	i.SetDown(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = i.Refresh(ctx, "secret-refresh-token")
	require.True(t, errs.Is(err, errs.Unavailable))
}
