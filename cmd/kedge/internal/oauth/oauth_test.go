package oauth_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/oauth"
)

// hub is one that answers POSTs with a code and a body.
type hub struct {
	*httptest.Server
	code int
	body string
	form map[string][]string
	path string
}

func newHub(t *testing.T) (*hub, oauth.Config) {
	t.Helper()
	h := &hub{code: http.StatusOK}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			at := h.URL + "/auth/"
			_ = json.NewEncoder(w).Encode(map[string]string{
				"issuer": h.URL, "authorization_endpoint": at + "authorize", "token_endpoint": at + "token",
				"device_authorization_endpoint": at + "device", "revocation_endpoint": at + "revoke",
			})
			return
		}
		_ = r.ParseForm()
		h.form, h.path = r.PostForm, r.URL.RequestURI()
		w.WriteHeader(h.code)
		_, _ = io.WriteString(w, h.body)
	}))
	t.Cleanup(h.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return h, oauth.Config{Server: h.URL, CA: ca, Agent: "test", Clock: clocktesting.NewFakeClock(time.Now())}
}

func TestRefresh_returnsTheNextTokens(t *testing.T) {
	t.Parallel()
	h, c := newHub(t)
	h.body = `{"access_token":"id","token_type":"bearer","expires_in":60,"refresh_token":"next"}`
	hub, err := oauth.Discover(t.Context(), c)
	require.NoError(t, err)
	got, err := hub.Refresh(t.Context(), "secret")
	require.NoError(t, err)
	require.Equal(t, oauth.Tokens{AccessToken: "id", Secret: "next", ExpiresAt: c.Clock.Now().Add(time.Minute)}, got)
	require.Equal(t, "/auth/token", h.path, "no secret is in the URL")
	require.Equal(t, map[string][]string{"client_id": {"kedge-cli"}, "grant_type": {"refresh_token"}, "refresh_token": {"secret"}}, h.form)
}

func TestRefresh_refusesAnswersWithoutTokens(t *testing.T) {
	t.Parallel()
	h, c := newHub(t)
	hub, err := oauth.Discover(t.Context(), c)
	require.NoError(t, err)
	for _, body := range []string{
		``, `[]`, `{}`, `{"access_token":"id","token_type":"mac","expires_in":60,"refresh_token":"next"}`,
		`{"access_token":"","token_type":"bearer","expires_in":60,"refresh_token":"next"}`,
		`{"access_token":"a b","token_type":"bearer","expires_in":60,"refresh_token":"next"}`,
		`{"access_token":"a\nX-Evil: b","token_type":"bearer","expires_in":60,"refresh_token":"next"}`,
		`{"access_token":"id","token_type":"bearer","expires_in":60}`,
		`{"access_token":"id","token_type":"bearer","expires_in":-1,"refresh_token":"next"}`,
		`{"access_token":"id","token_type":"bearer","expires_in":"60","refresh_token":"next"}`,
	} {
		h.body = body
		_, err := hub.Refresh(t.Context(), "secret")
		require.Error(t, err, body)
		require.False(t, oauth.Unavailable(err), body)
	}
}

func TestError_isOneLineAndSaysIfTheHubCanAnswerLater(t *testing.T) {
	t.Parallel()
	h, c := newHub(t)
	hub, err := oauth.Discover(t.Context(), c)
	require.NoError(t, err)
	for _, a := range []struct {
		code  int
		body  string
		says  string
		later bool
	}{
		{400, `{"error":"invalid_grant","error_description":"the session\n has\u001b[1m ended"}`, "the session has [1m ended", false},
		{400, `{"error":"invalid_grant"}`, "the hub answered invalid_grant", false},
		{400, `{"kind":"Status","message":"bad request"}`, "bad request", false},
		{404, `<html>`, "the hub answered 404 Not Found", false},
		{302, ``, "the hub answered 302 Found", false},
		{429, `{"error":"temporarily_unavailable","error_description":"too many"}`, "too many", true},
		{503, `{"error":"temporarily_unavailable","error_description":"later"}`, "later", true},
		{502, `bad gateway`, "the hub answered 502 Bad Gateway", true},
	} {
		h.code, h.body = a.code, a.body
		err := hub.RevokeSession(t.Context(), "secret")
		require.EqualError(t, err, a.says)
		require.Equal(t, a.later, oauth.Unavailable(err), a.code)
	}
	h.Close()
	err = hub.RevokeSession(t.Context(), "secret")
	require.True(t, oauth.Unavailable(err))
	require.NotContains(t, fmt.Sprint(err), "secret")
}
