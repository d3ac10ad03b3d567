package cli_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const auditList = `{"replicas":[],"continue":"","items":[
	{"id":"B","time":"2026-11-21T00:00:02Z","stage":"outcome","action":"kubernetes create","actor":{"kind":"bot","bot":"0f8fad5b-d9cb-469f-a165-70867728950e"},"code":201,
		"resource":{"verb":"create","resource":"configmaps","namespace":"default","name":"a\u001b[2J"}},
	{"id":"A","time":"2026-11-21T00:00:01Z","stage":"intent","action":"POST /api/orgs/{org}/members","actor":{"kind":"person","user":"alice"},"object":"bob","facts":{"role":"admin"}}]}`

func TestAudit_listsTheEventsOfADay(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	asked := b.record(t, "GET "+orgPath+"/audit", http.StatusOK, auditList)
	code, out, errOut := b.run(t, "audit")
	require.Zero(t, code, errOut)
	require.Regexp(t, `intent +alice +POST /api/orgs/\{org\}/members +bob +\{"role":"admin"\}`, out)
	require.Regexp(t, `outcome +0f8fad5b-d9cb-469f-a165-70867728950e +kubernetes create +configmaps/default/a\x{FFFD}\[2J +201`, out)
	query, err := url.ParseQuery((*asked)[0].query)
	require.NoError(t, err)
	since, err := time.Parse(time.RFC3339, query.Get("since"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-24*time.Hour), since, time.Minute)
	require.Equal(t, orgUUID, (*asked)[0].org)

	code, out, errOut = b.run(t, "audit", "--since", "7d", "--until", "1h", "--actor", "alice", "--action", "members", "--workspace", wsUUID,
		"--object", "bob", "--code", "4xx", "-o", "wide")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "WORKSPACE")
	query, err = url.ParseQuery((*asked)[1].query)
	require.NoError(t, err)
	require.NotEmpty(t, query.Get("until"))
	for name, want := range map[string]string{"actor": "alice", "action": "members", "workspace": wsUUID, "object": "bob", "code": "4xx"} {
		require.Equal(t, want, query.Get(name))
	}

	code, out, errOut = b.run(t, "audit", "-o", "json")
	require.Zero(t, code, errOut)
	require.Contains(t, out, `"role": "admin"`)
}

// The hub writes CSV and NDJSON, and the answer is written as it comes.
func TestAudit_exportsWhatTheHubWrites(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.mux.HandleFunc("GET "+orgPath+"/audit", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("actor") == "cut" {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = w.Write([]byte(r.Header.Get("Accept") + " " + r.URL.Query().Get("since") + " " + r.URL.Query().Get("limit")))
	})
	code, out, errOut := b.run(t, "audit", "--since", "2026-03-01T00:00:00Z", "-o", "csv")
	require.Zero(t, code, errOut)
	require.Equal(t, "text/csv 2026-03-01T00:00:00Z ", out)
	code, out, errOut = b.run(t, "audit", "--since", "2026-03-01T00:00:00Z", "-o", "ndjson")
	require.Zero(t, code, errOut)
	require.Equal(t, "application/x-ndjson 2026-03-01T00:00:00Z ", out)
	code, _, _ = b.run(t, "audit", "--actor", "cut", "-o", "csv")
	require.NotZero(t, code, "an answer that was cut off is no whole one")
	code, _, errOut = b.run(t, "audit", "--since", "yesterday")
	require.NotZero(t, code)
	require.Contains(t, errOut, "2026-03-01T00:00:00Z")
}

// Admins of a workspace who are none of its organization are told of the workspace.
func TestAudit_ofAWorkspaceIsForItsAdmins(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+orgPath+"/audit", http.StatusForbidden, `{"kind":"Status","message":"only an admin of this organization may read its audit log"}`)
	asked := b.record(t, "GET "+wsPath+"/audit", http.StatusOK, auditList)
	code, out, errOut := b.run(t, "audit", "--workspace", wsUUID, "--code", "403")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "kubernetes create")
	require.Equal(t, wsUUID, (*asked)[0].workspace)
	require.Contains(t, (*asked)[0].query, "code=403")
	require.NotContains(t, (*asked)[0].query, "workspace=")
	code, _, errOut = b.run(t, "audit")
	require.NotZero(t, code)
	require.Contains(t, errOut, "only an admin")
}
