package login_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTokenRequest: no body gets a token or an answer of the 500s.
func FuzzTokenRequest(f *testing.F) {
	f.Add(redemption("code-x").Encode(), form)
	f.Add("client_id=kedge-cli&grant_type=refresh_token&refresh_token=x", form)
	f.Add("client_id=kedge-cli&grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=%00", form+";charset=utf-8")
	f.Add("{}", "application/json")
	f.Fuzz(func(t *testing.T, body, contentType string) {
		a := newHub(t).browser(t).do(http.MethodPost, "/auth/token", contentType, body)
		require.GreaterOrEqual(t, a.code, 400, a.body)
		require.Less(t, a.code, 500, a.body)
		require.Contains(t, a.body, `"error":`)
	})
}

// FuzzLoginCookie: no cookie but one that the hub has made finishes a login.
func FuzzLoginCookie(f *testing.F) {
	f.Add([]byte(""), "state")
	f.Add([]byte(`{"kind":"cli","state":"state","expiresAt":99999999999}`), "state")
	f.Fuzz(func(t *testing.T, sealed []byte, state string) {
		h := newHub(t)
		b := h.browser(t)
		b.cookies[loginCookie] = base64.RawURLEncoding.EncodeToString(sealed)
		query := url.Values{"state": {state}, "code": {"alice"}}
		b.get("/auth/callback", query).page(t, http.StatusBadRequest)
		require.Empty(t, h.sessions.logins)
		// What the hub has sealed, with content that it would not write, is not trusted to be whole.
		own, err := h.keyring.Seal("login cookie", sealed)
		require.NoError(t, err)
		b.cookies[loginCookie] = base64.RawURLEncoding.EncodeToString(own)
		require.Less(t, b.get("/auth/callback", query).code, 500)
	})
}
