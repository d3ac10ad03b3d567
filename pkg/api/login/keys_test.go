package login_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

// A login comes to a replica that has not read the newest key yet, and later to one that has it.
func TestLogin_waitsForAReplicaThatHasItsKey(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, h *hub, b *browser) (goOn func() answer){
		"from the provider": func(_ *testing.T, _ *hub, b *browser) func() answer {
			begun := b.get("/auth/authorize", authorization())
			return func() answer { return b.callback(begun, "alice") }
		},
		"to the portal": func(_ *testing.T, _ *hub, b *browser) func() answer {
			begun := b.get("/auth/login", nil)
			return func() answer { return b.callback(begun, "alice") }
		},
		"after the page about a computer": func(t *testing.T, _ *hub, b *browser) func() answer {
			form := b.asked("alice").formOf(t, "continue")
			return func() answer { return b.post("/auth/authorize", form) }
		},
		"after the code of a device": func(t *testing.T, h *hub, b *browser) func() answer {
			h.start(t, "server-1")
			b.enter("BCDF-GHJK").page(t, http.StatusOK)
			return func() answer { return b.get("/auth/device/login", nil) }
		},
		"after the page about a device": func(t *testing.T, h *hub, b *browser) func() answer {
			h.start(t, "server-1")
			form := b.confirming("alice")
			return func() answer { return b.post("/auth/device/verify", form) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			b := h.browser(t)
			goOn := begin(t, h, b)
			cookie, logins, events := b.cookies[loginCookie], len(h.sessions.logins), len(h.events)
			own, other := []byte(strings.Repeat("k", session.KeySize)), []byte(strings.Repeat("o", session.KeySize))
			require.NoError(t, h.keyring.Replace([][]byte{other}))
			exchanges := h.limits.exchanges
			page := goOn().page(t, http.StatusBadRequest)
			require.Contains(t, page, "Try again in a moment")
			require.Contains(t, page, "reload this page")
			require.Equal(t, cookie, b.cookies[loginCookie])
			require.Len(t, h.sessions.logins, logins)
			require.Len(t, h.events, events)
			require.Equal(t, exchanges, h.limits.exchanges, "the code of the provider is not used up")
			require.NoError(t, h.keyring.Replace([][]byte{other, own}))
			require.Less(t, goOn().code, http.StatusBadRequest)
		})
	}
}

// Anybody can name a key that the hub does not have: it has no right, and is no error of the server.
func TestLogin_refusesACookieThatNamesAKeyThatNobodyHas(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	for _, path := range []string{"/auth/callback", "/auth/device/login"} {
		b.cookies[loginCookie] = strings.Repeat("forged", 20)
		strangers := h.limits.strangers
		b.get(path, url.Values{"state": {""}, "code": {"alice"}}).page(t, http.StatusBadRequest)
		require.Equal(t, strangers+1, h.limits.strangers, "it has the limit of a stranger")
	}
	require.Zero(t, h.limits.exchanges)
	require.Empty(t, h.sessions.logins)
	require.Empty(t, h.events)
}
