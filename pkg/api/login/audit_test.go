package login_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

func TestAudit_whatCannotBeWrittenLogsNobodyIn(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	poll := h.start(t, "server-1")
	device, cli, portal := h.browser(t), h.browser(t), h.browser(t)
	confirmation := device.confirming("alice")
	logins := len(h.sessions.logins)
	h.unaudited = syscall.ENOSPC
	to := cli.logIn(cli.get("/auth/authorize", authorization()), "alice").location(t)
	require.Equal(t, "temporarily_unavailable", to.Query().Get("error"))
	require.Contains(t, to.Query().Get("error_description"), "audit log")
	require.Contains(t, portal.logIn(portal.get("/auth/login", nil), "alice").page(t, http.StatusServiceUnavailable), "audit log")
	require.Empty(t, portal.cookies)
	device.post("/auth/device/verify", confirmation).page(t, http.StatusServiceUnavailable)
	h.browser(t).post("/auth/token", poll).oauthError(t, http.StatusBadRequest, "authorization_pending")
	require.Len(t, h.sessions.logins, logins)

	static := newHubWith(t, nil, staticTokens)
	static.unaudited = syscall.ENOSPC
	b := static.browser(t)
	b.post("/auth/token-login", url.Values{"token": {"token-of-alice"}}).page(t, http.StatusServiceUnavailable)
	require.Empty(t, b.cookies)
	require.Empty(t, static.sessions.logins)
}

// What ends a session, and a session that goes on, do not depend on the audit log.
func TestAudit_whatCannotBeWrittenLogsPeopleOut(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	code := h.browser(t).authorized("alice")
	b := h.browser(t)
	b.logIn(b.get("/auth/login", nil), "alice").page(t, http.StatusOK)
	h.unaudited = syscall.ENOSPC
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", redemption(code)).code)
	b.post("/auth/logout", nil).page(t, http.StatusOK)
	require.Empty(t, h.sessions.cookies)
}

func TestAudit_hasTheTokensOfASession(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	code := h.browser(t).authorized("alice")
	h.events = nil
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", redemption(code)).code)
	require.Len(t, h.events, 1)
	require.Equal(t, audit.StageOutcome, h.events[0].Stage)
	require.Equal(t, "token authorization_code", h.events[0].Action)
	require.Equal(t, "alice", h.events[0].User)
	require.Equal(t, "session-of-alice", h.events[0].Session)
	require.EqualValues(t, 3, h.events[0].Generation, "an earlier secret must not work again after a restore")
}

// A secret that is presented again may be a stolen one, and its session ends.
func TestAudit_hasRefusedTokens(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	code, device := redemption(h.browser(t).authorized("alice")), h.start(t, "server-1")
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", code).code)
	secrets := slices.Collect(maps.Keys(h.sessions.secrets))
	h.events = nil
	h.browser(t).post("/auth/token", device).oauthError(t, http.StatusBadRequest, "authorization_pending")
	require.Empty(t, h.events)
	h.browser(t).post("/auth/token", code).oauthError(t, http.StatusBadRequest, "invalid_grant")
	h.sessions.fails = &session.Error{Code: session.CodeInvalidGrant, Description: "the session has ended", Ended: "stolen"}
	h.browser(t).post("/auth/token", url.Values{"client_id": {"kedge-cli"}, "grant_type": {"refresh_token"}, "refresh_token": secrets}).
		oauthError(t, http.StatusBadRequest, "invalid_grant")
	require.Equal(t, []login.Event{
		{Stage: audit.StageOutcome, Action: "token authorization_code", Code: http.StatusBadRequest},
		{Stage: audit.StageOutcome, Action: "token refresh_token", Code: http.StatusBadRequest, User: "alice", Session: "stolen"},
	}, h.events)
	require.Equal(t, 1, h.unchanged, "a restore needs the event of the one that ended its session alone")
}

// A person keeps a secret whose session has ended, and logs out with it for ever.
func TestAudit_aSessionEndsOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", redemption(h.browser(t).authorized("alice"))).code)
	secret := slices.Collect(maps.Keys(h.sessions.secrets))
	h.events, h.sessions.endedAt = nil, &metav1.Time{Time: time.Unix(1_000, 0)}
	for range 3 {
		require.Equal(t, http.StatusOK, h.browser(t).post("/auth/revoke", url.Values{"token": secret}).code)
	}
	require.Empty(t, h.events)
}
