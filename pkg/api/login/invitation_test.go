package login_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

const (
	invitation       = "77777777-7777-4777-8777-777777777777"
	invitationCookie = "__Host-kedge-invitation"
)

func TestInvitation_isPresentedByTheSignUp(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := h.browser(t)
	to := b.post("/auth/invitation", url.Values{"id": {invitation}, "secret": {"the-secret"}}).location(t)
	require.Equal(t, "/auth/login", to.Path)
	require.Equal(t, "/ui/invitations/"+invitation, to.Query().Get("return_to"))
	require.NotContains(t, to.String()+b.cookies[invitationCookie], "the-secret")
	back := b.logIn(b.get(to.Path, to.Query()), "alice").location(t)
	require.Equal(t, "/ui/invitations/"+invitation, back.Path)
	require.Equal(t, []httpmw.PresentedInvitation{{ID: invitation, Secret: "the-secret"}}, h.invited)

	// It lives as long as a login may take.
	h.invited = nil
	h.clock.SetTime(now.Add(10 * time.Minute))
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	require.Empty(t, h.invited)
}

func TestInvitation_refusesBadForms(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for name, form := range map[string]url.Values{
		"no secret":       {"id": {invitation}},
		"no ID":           {"secret": {"s"}},
		"a path":          {"id": {"../orgs/" + invitation}, "secret": {"s"}},
		"a long secret":   {"id": {invitation}, "secret": {string(make([]byte, 200))}},
		"two of a kind":   {"id": {invitation, invitation}, "secret": {"s"}},
		"upper-case UUID": {"id": {"7777777A-7777-4777-8777-777777777777"}, "secret": {"s"}},
	} {
		b := h.browser(t)
		b.post("/auth/invitation", form).page(t, http.StatusBadRequest)
		require.Empty(t, b.cookies, name)
	}
	b := h.browser(t)
	b.header.Set("Sec-Fetch-Site", "cross-site")
	b.post("/auth/invitation", url.Values{"id": {invitation}, "secret": {"s"}}).page(t, http.StatusForbidden)
	require.Empty(t, b.cookies, "another site chooses what somebody signs up with")
	b = h.browser(t)
	b.cookies[invitationCookie] = "forged"
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	require.Empty(t, h.invited)
}
