package framework

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Login is a login of a command line at a hub, without the program: it makes the requests
// of RFC 8252 and RFC 7636.
type Login struct {
	RedirectURI, State, Verifier string
}

// NewLogin returns a login on a loopback port on which nothing listens.
func NewLogin() *Login {
	return &Login{RedirectURI: "http://127.0.0.1:1/callback", State: "state-" + rand.Text(), Verifier: rand.Text() + rand.Text()}
}

// URL is what the command line opens in the browser.
func (l *Login) URL(hub *Client) string {
	challenge := sha256.Sum256([]byte(l.Verifier))
	return hub.URL + "/auth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {"kedge-cli"}, "redirect_uri": {l.RedirectURI}, "state": {l.State},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"}, "description": {"test"},
	}.Encode()
}

// Code is the code in the redirect that the browser was stopped at.
func (l *Login) Code(t testing.TB, p *Page) string {
	t.Helper()
	require.NotNil(t, p.Location, "%s: %d %s", p.URL.Path, p.Code, p.Body)
	require.Equal(t, l.RedirectURI, p.Location.Scheme+"://"+p.Location.Host+p.Location.Path)
	query := p.Location.Query()
	require.Equal(t, l.State, query.Get("state"))
	require.NotEmpty(t, query.Get("code"), "%s", p.Location)
	return query.Get("code")
}

// Redeem presents a code to a hub.
func (l *Login) Redeem(t testing.TB, hub *Client, code string) Answer {
	t.Helper()
	return hub.Token(t, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {l.Verifier}, "redirect_uri": {l.RedirectURI},
	})
}

// Tokens are what a hub gives to a command line.
type Tokens struct{ Access, Secret string }

// TokensOf reads the tokens from an answer.
func TokensOf(t testing.TB, a Answer) Tokens {
	t.Helper()
	require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
	out := Tokens{Access: a.Text("access_token"), Secret: a.Text("refresh_token")}
	require.NotEmpty(t, out.Access)
	require.NotEmpty(t, out.Secret)
	return out
}

// Token sends a form to the token endpoint, as the command line's client.
func (c *Client) Token(t testing.TB, form url.Values) Answer {
	t.Helper()
	return c.Form(t, "/auth/token", form)
}

// Refresh presents the secret of a session.
func (c *Client) Refresh(t testing.TB, secret string) Answer {
	t.Helper()
	return c.Token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {secret}})
}

// Form posts a form as the command line's client.
func (c *Client) Form(t testing.TB, path string, form url.Values) Answer {
	t.Helper()
	a, err := c.TryForm(path, form)
	require.NoError(t, err)
	require.Less(t, a.Code, 500, "%s: %s", path, a.Raw)
	return a
}

// TryForm is Form for goroutines, which must not end a test.
func (c *Client) TryForm(path string, form url.Values) (Answer, error) {
	form.Set("client_id", "kedge-cli")
	return c.Try(Call{Method: http.MethodPost, Path: path, Body: form.Encode(), Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}})
}

// LogInAt logs a person in at a hub, as kedge login does.
func (d *Dex) LogInAt(t testing.TB, hub *Client, person string) Tokens {
	t.Helper()
	l := NewLogin()
	code := l.Code(t, d.LogIn(t, NewBrowser(t, hub.CA, d.CAFile), l.URL(hub), person))
	return TokensOf(t, l.Redeem(t, hub, code))
}
