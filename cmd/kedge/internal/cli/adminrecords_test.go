package cli_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdminAudit_listsTheEventsOfTheHub(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET /api/admin/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
	asked := b.record(t, "GET /api/admin/audit", http.StatusOK, `{"replicas":[],"continue":"","items":[{"id":"A","time":"2026-11-21T00:00:01Z","stage":"outcome",
		"action":"POST /api/orgs/{org}/members","actor":{"kind":"person","user":"alice"},"object":"bob","code":201,"org":"`+orgUUID+`","issuer":"https://idp.example.com","peer":"192.0.2.7"}]}`)
	code, out, errOut := b.run(t, "admin", "audit", "--org", "ACME", "--workspace", wsUUID, "--actor", "alice", "--code", "2xx", "-o", "wide")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "POST /api/orgs/{org}/members")
	require.Contains(t, out, "192.0.2.7")
	require.Contains(t, out, "https://idp.example.com")
	query, err := url.ParseQuery((*asked)[0].query)
	require.NoError(t, err)
	for name, want := range map[string]string{"org": orgUUID, "workspace": wsUUID, "actor": "alice", "code": "2xx"} {
		require.Equal(t, want, query.Get(name))
	}
	require.NotEmpty(t, query.Get("since"))
	code, out, errOut = b.run(t, "admin", "audit")
	require.Zero(t, code, errOut)
	require.NotContains(t, out, "192.0.2.7")
	require.NotContains(t, (*asked)[1].query, "org=")
	code, _, errOut = b.run(t, "admin", "audit", "--workspace", "dev")
	require.NotZero(t, code)
	require.Contains(t, errOut, "UUID")
}

func TestAdminUsage_listsWhatOrgsUse(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET /api/admin/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
	asked := b.record(t, "GET /api/admin/usage", http.StatusOK, `{"replicas":[],"continue":"","items":[{"from":"2026-11-01T00:00:00Z","to":"2026-11-21T00:00:00Z","objects":17,
		"bytes":2,"requests":{"read":3,"write":4,"watch":5},"bytesOut":6,"people":7,"bots":8,"streamSeconds":9,"org":"`+orgUUID+`","orgDisplayName":"ACME"}]}`)
	code, out, errOut := b.run(t, "admin", "usage")
	require.Zero(t, code, errOut)
	require.Regexp(t, `ACME +2026-11-01T00:00:00Z +17 +2 +3 +4 +5 +6 +7 +8 +9`, out)
	require.NotContains(t, (*asked)[0].query, "step")
	code, _, errOut = b.run(t, "admin", "usage", "--org", "ACME", "--workspace", wsUUID, "--step", "day")
	require.Zero(t, code, errOut)
	query, err := url.ParseQuery((*asked)[1].query)
	require.NoError(t, err)
	for name, want := range map[string]string{"org": orgUUID, "workspace": wsUUID, "step": "day"} {
		require.Equal(t, want, query.Get(name))
	}
	code, _, errOut = b.run(t, "admin", "usage", "--step", "day")
	require.NotZero(t, code)
	require.Contains(t, errOut, "--org")
}

func TestAdminRecords_areExportedAsTheHubWritesThem(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	for _, path := range []string{"audit", "usage", "billing"} {
		b.mux.HandleFunc("GET /api/admin/"+path, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(r.Header.Get("Accept") + " " + r.URL.Query().Get("limit")))
		})
		code, out, errOut := b.run(t, "admin", path, "-o", "csv")
		require.Zero(t, code, errOut)
		require.Equal(t, "text/csv ", out)
	}
}

func TestAdminBilling_listsWhatBillsDependOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET /api/admin/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
	asked := b.record(t, "GET /api/admin/billing", http.StatusOK, `{"continue":"","items":[{"org":"`+orgUUID+`","orgDisplayName":"ACME","workspace":"`+wsUUID+`",
		"workspaceDisplayName":"Web","workspacePath":"root:web","costCenter":"4711","labels":{"team":"web"},"phase":"Ready","from":"2026-11-21T04:05:01Z"}]}`)
	code, out, errOut := b.run(t, "admin", "billing", "--org", "ACME", "--workspace", wsUUID, "--cost-center", "4711", "--since", "2026-11-01T00:00:00Z")
	require.Zero(t, code, errOut)
	require.Regexp(t, `ACME +Web +4711 +Ready +2026-11-21T04:05:01Z`, out)
	query, err := url.ParseQuery((*asked)[0].query)
	require.NoError(t, err)
	for name, want := range map[string]string{"org": orgUUID, "workspace": wsUUID, "costCenter": "4711", "from": "2026-11-01T00:00:00Z", "to": ""} {
		require.Equal(t, want, query.Get(name))
	}
}

func TestAdminAccess_showsWhoHadIt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET /api/admin/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
	asked := b.record(t, "GET /api/admin/access", http.StatusOK, `{"at":"2026-03-03T12:00:00Z","since":"2026-01-01T00:00:00Z","asOf":"2026-03-03T12:00:00Z","active":true,"items":[
		{"user":"alice","role":"admin","through":[{"through":"Membership","role":"admin","since":"2026-02-01T00:00:00Z"}]}]}`)
	code, out, errOut := b.run(t, "admin", "access", "--org", "ACME", "--workspace", wsUUID, "--at", "2026-03-03T12:00:00Z")
	require.Zero(t, code, errOut)
	require.Regexp(t, `alice .*admin`, out)
	query, err := url.ParseQuery((*asked)[0].query)
	require.NoError(t, err)
	require.Equal(t, url.Values{"org": {orgUUID}, "workspace": {wsUUID}, "at": {"2026-03-03T12:00:00Z"}}, query)
	code, _, errOut = b.run(t, "admin", "access")
	require.NotZero(t, code)
	require.Contains(t, errOut, "--org")
}
