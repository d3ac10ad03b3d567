package identity

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The cookie of the portal is good at once on every replica, under /api only and for the
// pages of the hub only, until the person logs out.
func TestCookie_isForTheAPIOfItsOwnSite(t *testing.T) {
	t.Parallel()
	hubs := kcp.SharedWithDex(t, dex, 2)
	for _, hub := range hubs {
		ready(t, hub, dex.IDToken(t, framework.HubClient, "bob"))
	}
	b := framework.NewBrowser(t, hubs[0].CA, hubs[1].CA, dex.CAFile)
	page := dex.LogIn(t, b, hubs[0].URL+"/auth/login?return_to=/api/users/me", "bob")
	require.Equal(t, http.StatusOK, page.Code, page.Body)
	require.Equal(t, "/api/users/me", page.URL.Path)
	ask := func(hub *framework.Hub, method, path, site string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, hub.URL+path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Sec-Fetch-Site", site)
		return b.Do(t, request).Code
	}
	for _, hub := range hubs {
		require.Equal(t, http.StatusOK, ask(hub, http.MethodGet, "/api/users/me", "same-origin"))
		require.Equal(t, http.StatusUnauthorized, ask(hub, http.MethodGet, "/clusters/abc/api/v1/namespaces", "same-origin"), "never under /clusters")
		require.Equal(t, http.StatusForbidden, ask(hub, http.MethodDelete, sessionsPath+"?all=true", "cross-site"))
	}
	require.Equal(t, http.StatusForbidden, ask(hubs[0], http.MethodPost, "/auth/logout", "cross-site"))
	require.Equal(t, http.StatusOK, ask(hubs[1], http.MethodGet, "/api/users/me", "same-origin"), "it did not end")

	stolen := b.Cookie(t, hubs[0].URL, "__Host-kedge").Value
	require.Equal(t, http.StatusOK, ask(hubs[0], http.MethodPost, "/auth/logout", "same-origin"))
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a := hub.Do(t, call{Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Cookie": {"__Host-kedge=" + stolen}}}, http.StatusOK, http.StatusUnauthorized)
			return framework.Equal(http.StatusUnauthorized, a.Code)
		})
	}
}
