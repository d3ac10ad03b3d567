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

	code, out, errOut = b.run(t, "audit", "--since", "7d", "--until", "1h", "--actor", "alice", "--action", "members", "--workspace", wsUUID, "-o", "wide")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "WORKSPACE")
	query, err = url.ParseQuery((*asked)[1].query)
	require.NoError(t, err)
	require.NotEmpty(t, query.Get("until"))
	require.Equal(t, "alice members "+wsUUID, query.Get("actor")+" "+query.Get("action")+" "+query.Get("workspace"))

	code, out, errOut = b.run(t, "audit", "-o", "json")
	require.Zero(t, code, errOut)
	require.Contains(t, out, `"role": "admin"`)
}
