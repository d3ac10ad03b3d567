package login_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/contract"
)

// TestLogin_saysThatTheStoreIsFull holds the routes that store something to the OpenAPI document, in both directions. The answer
// to a command line is a redirect.
func TestLogin_saysThatTheStoreIsFull(t *testing.T) {
	t.Parallel()
	full := errs.New(errs.InsufficientStorage, "81% of the hub's etcd is used")
	stores := map[contract.Operation]func() answer{
		{Method: http.MethodGet, Pattern: "/auth/callback"}: func() answer {
			h := newHub(t)
			h.signUpFails = full
			b := h.browser(t)
			return b.logIn(b.get("/auth/login", nil), "alice")
		},
		{Method: http.MethodPost, Pattern: "/auth/token"}: func() answer {
			h := newHub(t)
			code := h.browser(t).authorized("alice")
			h.sessions.fails = full
			return h.browser(t).post("/auth/token", redemption(code))
		},
		{Method: http.MethodPost, Pattern: "/auth/device"}: func() answer {
			h := newHub(t)
			h.sessions.fails = full
			return h.browser(t).post("/auth/device", url.Values{"client_id": {"kedge-cli"}})
		},
		{Method: http.MethodPost, Pattern: "/auth/device/verify"}: func() answer {
			h := newHub(t)
			h.start(t, "server-1")
			b := h.browser(t)
			confirmation := b.confirming("alice")
			h.sessions.fails = full
			return b.post("/auth/device/verify", confirmation)
		},
		{Method: http.MethodPost, Pattern: "/auth/token-login"}: func() answer {
			h := newHubWith(t, nil, staticTokens)
			h.signUpFails = full
			return h.browser(t).post("/auth/token-login", url.Values{"token": {"token-of-alice"}})
		},
	}
	document, err := contract.Load()
	require.NoError(t, err)
	for _, o := range document.Operations() {
		if !strings.HasPrefix(o.Pattern, "/auth/") {
			continue
		}
		ask, ok := stores[o]
		require.Equal(t, ok, document.Answers(o, http.StatusInsufficientStorage), o)
		if ok {
			a := ask()
			require.Equal(t, http.StatusInsufficientStorage, a.code, "%v: %s", o, a.body)
			require.Contains(t, a.body, "etcd is used", o)
			require.Empty(t, a.header.Get("Retry-After"), o)
		}
	}

	h := newHub(t)
	b := h.browser(t)
	page := b.callback(b.get("/auth/authorize", authorization()), "alice").formOf(t, "continue")
	h.sessions.fails = full
	require.Equal(t, "temporarily_unavailable", b.post("/auth/authorize", page).location(t).Query().Get("error"))
}
