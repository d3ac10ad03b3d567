package cli_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// issuer is the OAuth server of a hub in a test. Tokens are named id-1, id-2, ..., secrets
// secret-1, secret-2, ...
type issuer struct {
	server *httptest.Server
	now    func() time.Time
	mu     sync.Mutex
	// lifetime is that of tokens.
	lifetime time.Duration
	// refuse is the error that /auth/authorize or /auth/token answers; status is the code.
	refuse, description string
	status              int
	// date is how far the hub's clock is ahead.
	date time.Duration
	// change changes the redirect of /auth/authorize.
	change func(url.Values)
	// missing is true for a hub without an identity provider.
	missing bool
	// away is the number of requests to /auth/token that are answered with 503.
	away int
	// metadata replaces fields of the metadata.
	metadata map[string]any
	// entered is closed when /auth/token is asked, which waits for leave then.
	entered, leave chan struct{}
	// pending are the answers to the polls of a device, before the tokens.
	pending                     []string
	challenge, redirect         string
	descriptions                []string
	generation, asked, refreshs int
	revoked                     []string
}

func (b *bed) withIssuer(t *testing.T) *issuer {
	t.Helper()
	b.issuer = &issuer{server: b.Server, now: func() time.Time { return b.clock.Now() }, lifetime: time.Hour}
	b.browser = b.follow(t)
	return b.issuer
}

// follow is a browser that trusts the hub and follows redirects.
func (b *bed) follow(t *testing.T) func(string) {
	t.Helper()
	return func(url string) {
		response, err := b.Client().Get(url)
		if assert.NoError(t, err) {
			assert.NotEqual(t, int64(-1), response.ContentLength, "a page without its length is cut off when the command ends")
			assert.NoError(t, response.Body.Close())
		}
	}
}

func (i *issuer) accepts(bearer string) bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return bearer == fmt.Sprintf("Bearer id-%d", i.generation)
}

// serves answers requests outside /api.
func (i *issuer) serves(w http.ResponseWriter, r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/clusters/") {
		return false
	}
	if i == nil {
		http.NotFound(w, r)
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Date", i.now().Add(i.date).UTC().Format(http.TimeFormat))
	if i.missing {
		http.NotFound(w, r)
		return true
	}
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		at := i.server.URL + "/auth/"
		metadata := map[string]any{
			"issuer": i.server.URL, "authorization_endpoint": at + "authorize", "token_endpoint": at + "token",
			"device_authorization_endpoint": at + "device", "revocation_endpoint": at + "revoke",
		}
		maps.Copy(metadata, i.metadata)
		answer(w, http.StatusOK, metadata)
	case "/auth/authorize":
		i.authorize(w, r)
	case "/auth/token":
		i.token(w, r)
	case "/auth/device":
		i.descriptions = append(i.descriptions, r.FormValue("description"))
		answer(w, http.StatusOK, map[string]any{
			"device_code": "device-code", "user_code": "BCDF-GHJK", "verification_uri": i.server.URL + "/auth/device/verify",
			"verification_uri_complete": i.server.URL + "/auth/device/verify?user_code=BCDF-GHJK", "expires_in": 600, "interval": 5,
		})
	case "/auth/revoke":
		i.revoked = append(i.revoked, r.FormValue("token"))
	default:
		http.NotFound(w, r)
	}
	return true
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != "kedge-cli" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	i.challenge, i.redirect = q.Get("code_challenge"), q.Get("redirect_uri")
	i.descriptions = append(i.descriptions, q.Get("description"))
	back := url.Values{"state": {q.Get("state")}}
	if i.refuse == "" || i.status != 0 {
		back.Set("code", "the-code")
	} else {
		back.Set("error", i.refuse)
		back.Set("error_description", i.description)
	}
	if i.change != nil {
		i.change(back)
	}
	http.Redirect(w, r, i.redirect+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.asked++
	if i.entered != nil {
		close(i.entered)
		<-i.leave
	}
	refuse := func(code string) {
		answer(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": i.description})
	}
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch grant := r.PostFormValue("grant_type"); {
	case r.PostFormValue("client_id") != "kedge-cli":
		refuse("invalid_client")
		return
	case i.asked <= i.away:
		answer(w, http.StatusServiceUnavailable, map[string]any{"error": "temporarily_unavailable"})
		return
	case i.status != 0:
		answer(w, i.status, map[string]any{"error": i.refuse, "error_description": i.description})
		return
	case grant == "authorization_code":
		if r.PostFormValue("code") != "the-code" || r.PostFormValue("redirect_uri") != i.redirect ||
			base64.RawURLEncoding.EncodeToString(verifier[:]) != i.challenge {
			refuse("invalid_grant")
			return
		}
	case grant == "refresh_token":
		if r.PostFormValue("refresh_token") != fmt.Sprintf("secret-%d", i.generation) {
			refuse("invalid_grant")
			return
		}
		i.refreshs++
	case strings.HasSuffix(grant, "device_code"):
		if len(i.pending) > 0 {
			refuse(i.pending[0])
			i.pending = i.pending[1:]
			return
		}
	default:
		refuse("unsupported_grant_type")
		return
	}
	i.generation++
	answer(w, http.StatusOK, map[string]any{
		"access_token": fmt.Sprintf("id-%d", i.generation), "token_type": "Bearer",
		"expires_in": int(i.lifetime.Seconds()), "refresh_token": fmt.Sprintf("secret-%d", i.generation),
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// oauthLogin logs in with the browser.
func (b *bed) oauthLogin(t *testing.T, flags ...string) {
	t.Helper()
	code, out, errOut := b.run(t, append([]string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt")}, flags...)...)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "Logged in to "+b.URL+" as alice.\nTo see your organizations, run: kedge orgs.")
}
