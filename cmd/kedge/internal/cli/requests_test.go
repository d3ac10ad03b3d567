package cli_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	requested = "88888888-8888-4888-8888-888888888888"
	asked     = `{"id":"` + requested + `","state":"Open","user":"alice","workspace":"` + wsUUID + `","kind":"sudo","for":"1h0m0s","reason":"stuck","createdAt":"2026-11-01T00:00:00Z"}`
)

func TestRequests_areMadeAndDecided(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	made := b.record(t, "POST "+wsPath+"/requests", http.StatusCreated, asked)
	b.answer("GET "+orgPath+"/requests", http.StatusOK, `{"items":[`+asked+`],"continue":""}`)
	b.answer("GET "+orgPath+"/requests/workspaces", http.StatusOK, `{"items":[{"uuid":"`+wsUUID+`","displayName":"Shop"}],"continue":""}`)
	code, out, errOut := b.run(t, "requests", "create", "sudo", "--reason", "stuck", "--for", "30m")
	require.Zero(t, code, errOut)
	require.Contains(t, out, requested)
	require.JSONEq(t, `{"kind":"sudo","for":"30m","reason":"stuck"}`, (*made)[0].body)
	_, out, _ = b.run(t, "requests")
	require.Contains(t, out, "stuck")
	_, out, _ = b.run(t, "requests", "workspaces")
	require.Contains(t, out, "Shop")
	for _, decision := range []string{"approve", "deny", "withdraw", "revoke"} {
		decided := b.record(t, "POST "+orgPath+"/requests/"+requested+"/"+decision, http.StatusOK, asked)
		code, _, errOut := b.run(t, "requests", decision, requested, "--note", "fine")
		require.Zero(t, code, errOut)
		require.JSONEq(t, `{"note":"fine"}`, (*decided)[0].body)
		code, _, _ = b.run(t, "requests", decision, "..")
		require.Equal(t, 2, code)
	}
	code, _, _ = b.run(t, "requests", "create", "root", "--reason", "stuck")
	require.Equal(t, 2, code)
	for _, args := range [][]string{
		{"requests", "create", "sudo"}, {"requests", "create", "sudo", "--reason", " "}, {"admin", "orgs", "add-admin", "ACME", "bob"},
	} {
		code, _, errOut = b.run(t, args...)
		require.Equal(t, 2, code, "the reason is missing")
		require.Contains(t, errOut, "needs --reason TEXT, which says why; see --help")
	}
}

// The route of a workspace answers 403 to everybody who is not in it. That of the organization is for them.
func TestRequests_reachAWorkspaceThatOneIsNotIn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	const other = "77777777-7777-4777-8777-777777777777"
	inside := b.record(t, "POST "+orgPath+"/workspaces/"+other+"/requests", http.StatusForbidden,
		`{"kind":"Status","message":"not a member of the workspace","code":403}`)
	made := b.record(t, "POST "+orgPath+"/requests", http.StatusCreated, asked)
	code, out, errOut := b.run(t, "requests", "create", "member", "--workspace", other, "--reason", "to help")
	require.Zero(t, code, errOut)
	require.Contains(t, out, requested)
	require.Len(t, *inside, 1)
	require.Len(t, *made, 1)
	require.JSONEq(t, `{"workspace":"`+other+`","kind":"member","reason":"to help"}`, (*made)[0].body)

	// Other refusals are final.
	refused := b.record(t, "POST "+wsPath+"/requests", http.StatusConflict,
		`{"kind":"Status","message":"you have it already","code":409}`)
	code, _, errOut = b.run(t, "requests", "create", "member", "--workspace", wsUUID, "--reason", "to help")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "you have it already")
	require.Len(t, *refused, 1)
	require.Len(t, *made, 1)
}

// A guest of a workspace with too many open requests is told so, and not that he is not in the organization.
func TestRequests_tellAGuestTheRefusalOfTheWorkspace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("POST "+wsPath+"/requests", http.StatusForbidden, `{"kind":"Status","message":"you have 5 open requests","code":403}`)
	b.answer("POST "+orgPath+"/requests", http.StatusForbidden,
		`{"kind":"Status","message":"not a member of the organization","code":403}`)
	code, _, errOut := b.run(t, "requests", "create", "sudo", "--workspace", wsUUID, "--reason", "stuck")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "you have 5 open requests")
}
