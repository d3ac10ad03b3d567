package cli_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	invited  = "77777777-7777-4777-8777-777777777777"
	sent     = `{"id":"` + invited + `","state":"Open","role":"admin","scope":"org","email":"jane@example.com","invitedBy":"alice","createdAt":"2026-11-01T00:00:00Z","expiresAt":"2026-11-08T00:00:00Z"`
	accepted = `{"user":"alice","displayName":"Alice","role":"member","scope":"workspace","since":"2026-11-02T00:00:00Z","phase":"Ready","active":true,` +
		`"orgUUID":"` + orgUUID + `","workspaceUUID":"` + wsUUID + `"}`
)

func TestInvite_printsTheLink(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	org := b.record(t, "POST "+orgPath+"/invitations", http.StatusCreated, sent+`,"url":"https://hub/ui/invitations/x#s"}`)
	ws := b.record(t, "POST "+wsPath+"/invitations", http.StatusCreated, sent+`,"url":"https://hub/ui/invitations/y#s"}`)
	code, out, errOut := b.run(t, "members", "invite", "--email", "jane@example.com", "--role", "admin", "--note", "Hi")
	require.Zero(t, code, errOut)
	require.Equal(t, "https://hub/ui/invitations/x#s\n", out)
	require.Contains(t, errOut, "2026-11-08T00:00:00Z")
	require.JSONEq(t, `{"role":"admin","email":"jane@example.com","note":"Hi"}`, (*org)[0].body)
	code, out, _ = b.run(t, "workspaces", "members", "invite", "-o", "json", "--expires-in", "2d")
	require.Zero(t, code)
	require.Contains(t, out, `"url": "https://hub/ui/invitations/y#s"`)
	require.Contains(t, (*ws)[0].body, `"expiresAt":`)
	code, _, errOut = b.run(t, "members", "invite", "--expires-in", "soon")
	require.Equal(t, 2, code, errOut)
}

func TestInvitations_areListedAndRevoked(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET /api/users/me/invitations", http.StatusOK, `{"items":[{"id":"`+invited+`","state":"Open","role":"member","orgDisplayName":"ACME","invitedBy":"Alice","expiresAt":"2026-11-08T00:00:00Z"}],"continue":""}`)
	b.answer("GET "+orgPath+"/invitations", http.StatusOK, `{"items":[`+sent+`}],"continue":""}`)
	ws := b.record(t, "GET "+wsPath+"/invitations", http.StatusOK, `{"items":[],"continue":""}`)
	revoked := b.record(t, "DELETE "+orgPath+"/invitations/"+invited, http.StatusNoContent, "")
	_, out, _ := b.run(t, "invitations")
	require.Contains(t, out, "ACME")
	_, out, _ = b.run(t, "invitations", "list")
	require.Contains(t, out, "jane@example.com")
	code, _, errOut := b.run(t, "invitations", "list", "--workspace", wsUUID)
	require.Zero(t, code, errOut)
	require.Len(t, *ws, 1)
	code, _, errOut = b.run(t, "invitations", "revoke", invited)
	require.Zero(t, code, errOut)
	require.Len(t, *revoked, 1)
	code, _, _ = b.run(t, "invitations", "revoke", "..")
	require.Equal(t, 2, code)
}

func TestInvitations_acceptSendsTheSecretInAHeader(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	var secrets []string
	b.mux.HandleFunc("POST /api/invitations/"+invited+"/accept", func(w http.ResponseWriter, r *http.Request) {
		secrets = append(secrets, r.Header.Get("X-Kedge-Invitation"))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(accepted))
	})
	declined := b.record(t, "POST /api/invitations/"+invited+"/decline", http.StatusNoContent, "")
	code, _, errOut := b.run(t, "invitations", "accept", b.URL+"/ui/invitations/"+invited+"#the-secret")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "kedge workspaces use "+wsUUID+" --org "+orgUUID)
	code, _, errOut = b.run(t, "invitations", "accept", invited)
	require.Zero(t, code, errOut)
	require.Equal(t, []string{"the-secret", ""}, secrets)
	code, _, errOut = b.run(t, "invitations", "decline", invited)
	require.Zero(t, code, errOut)
	require.Len(t, *declined, 1)
	for _, bad := range []string{"nothing", b.URL + "/ui/invitations/" + invited, b.URL + "/ui/orgs/" + invited + "#s", "http://127.0.0.1/ui/invitations/" + invited + "#s"} {
		code, _, errOut = b.run(t, "invitations", "accept", bad)
		require.Equal(t, 2, code, errOut)
	}
	// The secret does not go to another hub than that of the link.
	code, _, errOut = b.run(t, "invitations", "accept", "https://other.example.com/ui/invitations/"+invited+"#the-secret")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "kedge login --server https://other.example.com")
	require.Len(t, secrets, 2)
}

func TestInvitations_acceptTellsStrangersToOpenTheLink(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	code, _, errOut := b.run(t, "invitations", "accept", "https://hub.example.com/ui/invitations/"+invited+"#s")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "Open the link in a browser")
	require.Contains(t, errOut, "kedge login --server https://hub.example.com")
	require.NotContains(t, errOut, "#s")
}

func TestInvite_sendsTheEndOfTheMembership(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	calls := b.record(t, "POST "+wsPath+"/invitations", http.StatusCreated, `{"id":"i","url":"https://hub/ui/invitations/i#s","expiresAt":"2030-01-01T00:00:00Z"}`)
	code, _, errOut := b.run(t, "workspaces", "members", "invite", "--role", "viewer", "--membership-expires-in", "90d")
	require.Zero(t, code, errOut)
	require.Len(t, *calls, 1)
	var body struct {
		Role                string    `json:"role"`
		MembershipExpiresAt time.Time `json:"membershipExpiresAt"`
	}
	require.NoError(t, json.Unmarshal([]byte((*calls)[0].body), &body))
	require.Equal(t, "viewer", body.Role)
	require.WithinDuration(t, time.Now().Add(90*24*time.Hour), body.MembershipExpiresAt, time.Minute)
}

func TestInvitations_acceptThatTakesTimeSaysSo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("POST /api/invitations/"+invited+"/accept", http.StatusAccepted, accepted)
	code, _, errOut := b.run(t, "invitations", "accept", b.URL+"/ui/invitations/"+invited+"#the-secret")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "still making you a member")
	require.NotContains(t, errOut, "member now")
}
