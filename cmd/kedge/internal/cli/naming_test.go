package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withTwins is a hub where two organizations, two workspaces and two bots have the same name.
func withTwins(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.login(t)
	twins := func(one, other, fields string) string {
		return `{"items":[{"uuid":"` + one + `","displayName":"Twin","createdAt":"2026-11-01T00:00:00Z",` + fields + `"alice"},` +
			`{"uuid":"` + other + `","displayName":"Twin","createdAt":"2026-11-02T00:00:00Z",` + fields + `"bob"}],"continue":""}`
	}
	b.answer("GET /api/orgs", http.StatusOK, strings.Replace(twins(orgUUID, otherOrg, `"firstAdmin":`), `"continue"`, `"x":"y","continue"`, 1))
	b.answer("GET "+orgPath+"/workspaces", http.StatusOK, twins(wsUUID, otherWS, `"createdBy":`))
	b.answer("GET "+botsPath, http.StatusOK, twins(botUUID, tokenID, `"role":"member","x":`))
	return b
}

func TestNames_ambiguousOnesListTheCandidates(t *testing.T) {
	t.Parallel()
	b := withTwins(t)
	at := " --org " + orgUUID
	for args, want := range map[string][]string{
		"orgs use Twin":                                         {`2 organizations have the name "Twin"`, "FIRST ADMIN", orgUUID + "   2026-11-01T00:00:00Z   alice", otherOrg + "   2026-11-02T00:00:00Z   bob"},
		"orgs delete Twin --yes":                                {orgUUID, otherOrg},
		"members --org Twin":                                    {orgUUID, otherOrg},
		"kubeconfig --all --org Twin":                           {orgUUID, otherOrg},
		"workspaces --org Twin":                                 {orgUUID, otherOrg},
		"workspaces use Twin" + at:                              {`2 workspaces have the name "Twin"`, "CREATED BY", wsUUID + "   2026-11-01T00:00:00Z   alice", otherWS + "   2026-11-02T00:00:00Z   bob"},
		"workspaces get Twin" + at:                              {wsUUID, otherWS},
		"bots --workspace Twin" + at:                            {wsUUID, otherWS},
		"sudo --workspace Twin" + at + " -- kubectl get ns":     {wsUUID, otherWS},
		"bots get Twin --workspace " + wsUUID + at:              {`2 bots have the name "Twin"`, botUUID, tokenID, "member"},
		"bots tokens create Twin --workspace " + wsUUID + at:    {botUUID, tokenID},
		"bots delete Twin --yes --workspace " + wsUUID + at:     {botUUID, tokenID},
		"workspaces members --workspace Twin" + at + " -o name": {wsUUID, otherWS},
	} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, "%s: %s", args, errOut)
		require.Empty(t, out, args)
		for _, text := range want {
			require.Contains(t, errOut, text, args)
		}
		require.NotContains(t, errOut, "--help", args)
	}
}

func TestNames_areAcceptedWhereAUUIDIs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET "+botsPath, http.StatusOK, `{"items":[`+aBot+`]}`)
	for args, route := range map[string]string{
		"members --org ACME":                                "GET " + orgPath + "/members",
		"workspaces members --org ACME --workspace Web":     "GET " + wsPath + "/members",
		"bots tokens list CI --org ACME --workspace Web":    "GET " + botPath + "/tokens",
		"bots set-role CI admin":                            "PATCH " + botPath,
		"bots delete CI --yes":                              "DELETE " + botPath,
		"bots tokens revoke CI --all --yes --workspace Web": "DELETE " + botPath + "/tokens",
		"orgs get ACME":                                     "GET " + orgPath,
		"orgs rename ACME Acme":                             "PATCH " + orgPath,
		"workspaces rename Web Shop --org ACME":             "PATCH " + wsPath,
		"workspaces leave Web --org ACME":                   "DELETE " + wsPath + "/memberships/me",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			b.answer("GET "+botsPath, http.StatusOK, `{"items":[`+aBot+`]}`)
			calls := b.record(t, route, http.StatusOK, `{"items":[],"uuid":"x"}`)
			code, _, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.Len(t, *calls, 1)
		})
	}
	for args, says := range map[string]string{
		"orgs get NONE":               `there is no organization with the UUID or the name "NONE"; to see what there is, run: kedge orgs list`,
		"bots --workspace NONE":       `there is no workspace with the UUID or the name "NONE"; to see what there is, run: kedge workspaces list`,
		"bots tokens list NONE":       `there is no bot with the UUID or the name "NONE"; to see what there is, run: kedge bots list`,
		"workspaces get x --org acme": `there is no organization with the UUID or the name "acme"`,
	} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Contains(t, errOut, says, args)
	}
}

// Members of a workspace alone may not read its organization.
func TestNames_ofAnOrganizationWhereOnlyAWorkspaceIsTheirs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET /api/orgs", http.StatusOK, `{"items":[]}`)
	b.answer("GET "+orgPath, http.StatusForbidden, `{"kind":"Status","message":"you have no membership there"}`)
	b.answer("GET /api/users/me/memberships", http.StatusOK, `{"items":[{"orgUUID":"`+orgUUID+`","orgDisplayName":"ACME","orgCreatedAt":"2026-11-01T00:00:00Z","orgFirstAdmin":"alice",`+
		`"workspaceUUID":"`+wsUUID+`","workspaceDisplayName":"Web","role":"member"}]}`)
	b.answer("GET "+orgPath+"/workspaces", http.StatusOK, `{"items":[{"uuid":"`+wsUUID+`","displayName":"Web"}]}`)
	b.answer("GET "+wsPath, http.StatusOK, `{"uuid":"`+wsUUID+`","displayName":"Web"}`)
	b.answer("GET "+wsPath+"/kubeconfig", http.StatusOK, b.kubeconfig(wsUUID))
	for _, args := range []string{"orgs use ACME", "workspaces use Web --org ACME", "kubeconfig", "kubeconfig --all", "kubeconfig --org ACME --workspace Web", "kubeconfig --all --org ACME"} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Zero(t, code, "%s: %s", args, errOut)
		if strings.HasPrefix(args, "kubeconfig") {
			require.Contains(t, out, "current-context: ACME/Web\n", args)
		}
	}
}

func TestTables_showCreationAndFirstAdmin(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET /api/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME","role":"admin","phase":"Ready","createdAt":"2026-11-01T00:00:00Z",`+
		`"firstAdmin":"alice","description":"The shop\nof the north","personal":false,"workspaceQuota":{"limit":50,"used":3},"bytes":{"used":5,"limit":90},"defaultAccess":"none","billing":{"labels":{"team":"web"}},"workspacePath":"root:kedge:orgs:x"}]}`)
	b.answer("GET "+orgPath+"/workspaces", http.StatusOK, `{"items":[{"uuid":"`+wsUUID+`","displayName":"Web","role":"admin","phase":"Ready","createdAt":"2026-11-02T00:00:00Z",`+
		`"createdBy":"bob","description":"Its tills","manager":true,"requests":"members",`+
		`"billing":{"costCenter":"4711","labels":{"team":"web"}},"objects":{"used":7,"limit":20000},`+
		`"bytes":{"used":900,"limit":268435456},"customResourceDefinitions":{"used":2,"limit":200},"apiBindings":{"used":1,"limit":100},"roles":{"used":3,"limit":300},`+
		`"clusterID":"abc","url":"https://hub/clusters/abc","workspacePath":"root:kedge:orgs:x:y"}]}`)
	b.answer("GET /api/admin/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME","phase":"Ready","createdAt":"2026-11-01T00:00:00Z","createdBy":"alice",`+
		`"workspaceQuota":{"limit":50,"used":3},"billing":{"costCenter":"4711"}}]}`)
	for args, want := range map[string][2]string{
		"admin orgs":            {"UUID DISPLAY NAME PHASE CREATED CREATED BY WORKSPACES BILLING", orgUUID + " ACME Ready 2026-11-01T00:00:00Z alice 3/50 4711"},
		"orgs":                  {"UUID DISPLAY NAME ROLE PHASE CREATED FIRST ADMIN", orgUUID + " ACME admin Ready 2026-11-01T00:00:00Z alice"},
		"orgs list -o wide":     {"UUID DISPLAY NAME ROLE PHASE CREATED FIRST ADMIN DESCRIPTION PERSONAL WORKSPACES BYTES DEFAULT ACCESS BILLING PATH", orgUUID + " ACME admin Ready 2026-11-01T00:00:00Z alice The shop of the north false 3/50 5/90 none team=web root:kedge:orgs:x"},
		"workspaces --org ACME": {"UUID DISPLAY NAME ROLE PHASE CREATED CREATED BY", wsUUID + " Web admin Ready 2026-11-02T00:00:00Z bob"},
		"workspaces --org ACME -o wide": {
			"UUID DISPLAY NAME ROLE PHASE CREATED CREATED BY END DESCRIPTION MANAGER REQUESTS BILLING OBJECTS BYTES " +
				"CRDS APIBINDINGS ROLES CLUSTER URL PATH",
			wsUUID + " Web admin Ready 2026-11-02T00:00:00Z bob Its tills true members 4711,team=web 7/20000 900/268435456 " +
				"2/200 1/100 3/300 abc https://hub/clusters/abc root:kedge:orgs:x:y",
		},
	} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Zero(t, code, errOut)
		header, row, _ := strings.Cut(strings.TrimSpace(out), "\n")
		require.Equal(t, want, [2]string{strings.Join(strings.Fields(header), " "), strings.Join(strings.Fields(row), " ")}, args)
	}
}

// A manager without a role sees why the workspace is in the list.
func TestTables_showAManagerWithoutARole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET "+orgPath+"/workspaces", http.StatusOK,
		`{"items":[{"uuid":"`+wsUUID+`","displayName":"Web","role":"","manager":true,"phase":"Ready"}]}`)
	code, out, errOut := b.run(t, "workspaces", "--org", orgUUID)
	require.Zero(t, code, errOut)
	require.Regexp(t, "Web +manager +Ready", out)
}

func TestSettings_sendWhatTheFlagsName(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"orgs settings --workspace-creation admin":                                       `{"workspaceCreation":"admin"}`,
		"orgs settings ACME --catalog-entry-creation members --default-access view":      `{"catalogEntryCreation":"members","defaultAccess":"view"}`,
		"orgs settings --cost-center 4711 --billing-label team=web --billing-label old=": `{"billing":{"costCenter":"4711","labels":{"old":null,"team":"web"}}}`,
		"orgs settings --cost-center=":                                                   `{"billing":{"costCenter":null}}`,
		"orgs rename ACME New":                                                           `{"displayName":"New"}`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			calls := b.record(t, "PATCH "+orgPath, http.StatusOK, `{"uuid":"`+orgUUID+`","workspaceCreation":"admin"}`)
			code, out, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.JSONEq(t, want, (*calls)[0].body)
			require.Contains(t, out, orgUUID)
		})
	}
	b := newBed(t)
	b.inWorkspace(t)
	read := b.record(t, "GET "+orgPath, http.StatusOK, `{"uuid":"`+orgUUID+`","workspaceCreation":"admin","billing":{"costCenter":"4711"}}`)
	code, out, errOut := b.run(t, "orgs", "settings")
	require.Zero(t, code, errOut)
	require.Len(t, *read, 1, "without flags it changes nothing")
	require.Contains(t, out, "4711")
	for _, args := range []string{"orgs settings --workspace-creation nobody", "orgs settings --default-access admin", "orgs settings --billing-label x", "orgs settings a b",
		"workspaces set-billing Web", "workspaces set-billing --cost-center 1", "workspaces set-billing Web --billing-label x", "orgs rename ACME", "orgs get a b"} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, "%s: %s", args, errOut)
	}
}

func TestWorkspacesCreate_saysWhoIsAdmin(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("POST "+orgPath+"/workspaces", http.StatusCreated, `{"uuid":"`+otherWS+`","displayName":"New","phase":"Ready"}`)
	code, _, errOut := b.run(t, "workspaces", "create", "New")
	require.Zero(t, code, errOut)
	const sentence = "The admins of the organization are admins in every workspace of it."
	require.Contains(t, errOut, sentence)
	_, out, _ := b.run(t, "workspaces", "create", "--help")
	require.Contains(t, out, sentence)
}
