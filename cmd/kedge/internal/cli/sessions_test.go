package cli_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sessionID = "01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e3f"

const sessionList = `{"items":[
	{"id":"01932f5c-0000-7c3a-9d53-5b8f0c1d2e3f","client":"portal","description":"Firefox","createdAt":"2026-11-20T00:00:00Z","lastUsedAt":"2026-11-21T00:00:00Z","expiresAt":"2026-11-28T00:00:00Z","current":false},
	{"id":"` + sessionID + `","client":"cli","description":"laptop","createdAt":"2026-11-21T00:00:00Z","lastUsedAt":"2026-11-22T00:00:00Z","expiresAt":"2026-11-29T00:00:00Z","current":true}],"continue":""}`

func TestSessions_listMarksTheCurrentOne(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withIssuer(t)
	b.oauthLogin(t)
	b.answer("GET /api/users/me/sessions", http.StatusOK, sessionList)
	for _, args := range [][]string{{"sessions"}, {"sessions", "list"}} {
		code, out, errOut := b.run(t, args...)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "Firefox")
		require.Regexp(t, sessionID+` +cli +laptop +\S+ +\S+ +\S+ +true`, out)
	}
	code, out, _ := b.run(t, "sessions", "list", "-o", "name")
	require.Zero(t, code)
	require.Contains(t, out, sessionID+"\n")
}

func TestSessions_endOneOrAll(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withIssuer(t)
	b.oauthLogin(t)
	ended := b.record(t, "DELETE /api/users/me/sessions/"+sessionID, http.StatusNoContent, "")
	all := b.record(t, "DELETE /api/users/me/sessions", http.StatusNoContent, "")
	for _, args := range []string{"sessions end", "sessions end x", "sessions end ../" + sessionID, "sessions end --all " + sessionID} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, errOut)
	}
	code, out, errOut := b.run(t, "sessions", "end", sessionID)
	require.Zero(t, code, errOut)
	require.Equal(t, "Ended the session "+sessionID+".\n", out)
	require.Len(t, *ended, 1)
	require.Empty(t, *all)
	code, out, errOut = b.run(t, "sessions", "end", "--all")
	require.Zero(t, code, errOut)
	require.Equal(t, "Signed out of "+b.URL+" everywhere.\n", out)
	require.Equal(t, []call{{query: "all=true"}}, *all)
	code, _, errOut = b.run(t, "sessions")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "not logged in")
}

func TestWhoami_tellsPersonHubProfileAndExpiry(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.me = `{"name":"alice","displayName":"Alice","email":"a@example.com","expiresAt":"2026-11-22T01:00:00Z"}`
	b.login(t)
	code, out, errOut := b.run(t, "whoami")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "2026-11-22T01:00:00Z", "a static token has no session")
	b.withIssuer(t)
	b.oauthLogin(t, "--profile", "work")
	b.answer("GET /api/users/me/sessions", http.StatusOK, sessionList)
	code, out, errOut = b.run(t, "whoami")
	require.Zero(t, code, errOut)
	for _, text := range []string{"alice", "a@example.com", b.URL, "work", "2026-11-29T00:00:00Z"} {
		require.Contains(t, out, text)
	}
	code, out, _ = b.run(t, "whoami", "-o", "json")
	require.Zero(t, code)
	require.Contains(t, out, `"profile": "work"`)
}

func TestWhoami_worksForAPersonWhoMayNotListSessions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withIssuer(t)
	b.oauthLogin(t)
	b.answer("GET /api/users/me/sessions", http.StatusForbidden, `{"kind":"Status","message":"this account was deleted"}`)
	code, out, errOut := b.run(t, "whoami")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "alice")
}

func TestLogout_endsTheSessionAndForgets(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	i := b.withIssuer(t)
	b.login(t)
	for _, profile := range []string{"one", "two", "three"} {
		b.oauthLogin(t, "--profile", profile)
	}
	code, out, errOut := b.run(t, "logout", "--profile", "two")
	require.Zero(t, code, errOut)
	require.Equal(t, "Logged out of "+b.URL+".\n", out)
	require.Equal(t, []string{"secret-2"}, i.revoked)
	code, _, errOut = b.run(t, "logout", "--all", "--profile", "one")
	require.Equal(t, 2, code, errOut)
	code, _, errOut = b.run(t, "logout", "--all")
	require.Zero(t, code, errOut)
	require.ElementsMatch(t, []string{"secret-2", "secret-1", "secret-3"}, i.revoked)
	code, out, _ = b.run(t, "profiles", "-o", "name")
	require.Zero(t, code)
	require.Empty(t, out)
}

func TestLogout_forgetsWhenTheHubIsAway(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withIssuer(t)
	b.oauthLogin(t)
	b.Close()
	code, out, errOut := b.run(t, "logout")
	require.Zero(t, code)
	require.Equal(t, "Logged out of "+b.URL+".\n", out)
	require.Contains(t, errOut, "kedge: the session at "+b.URL+" could not be ended and ends when it expires: the hub at ")
	raw, err := os.ReadFile(b.file(".config/kedge/config.json"))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "secret-1")
}

func TestSessions_ofTwoHomesAreIndependent(t *testing.T) {
	t.Parallel()
	b, other := newBed(t), newBed(t)
	b.withIssuer(t)
	other.Server, other.issuer, other.browser = b.Server, b.issuer, b.browser
	b.oauthLogin(t)
	require.NoError(t, os.WriteFile(other.file("ca.crt"), b.ca(), 0o600))
	code, _, errOut := other.run(t, "login", "--server", b.URL, "--ca-file", other.file("ca.crt"))
	require.Zero(t, code, errOut)
	require.Empty(t, b.issuer.revoked, "a login from another home ends no session")
}
