package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdmin_sendsWhatWasSaidAndNothingElse(t *testing.T) {
	t.Parallel()
	const users, orgs = "/api/admin/users", "/api/admin/orgs"
	for args, c := range map[string]struct{ route, query, body string }{
		"admin users": {"GET " + users, "limit=500", ""},
		"admin users list --registration Pending":            {"GET " + users, "limit=500&registration=Pending", ""},
		"admin users --query bo":                             {"GET " + users, "limit=500&q=bo", ""},
		"admin users get bob":                                {"GET " + users + "/bob", "", ""},
		"admin users memberships bob":                        {"GET " + users + "/bob/memberships", "limit=500", ""},
		"admin users delete bob --yes":                       {"DELETE /api/users/bob", "", ""},
		"admin users undelete bob":                           {"POST /api/users/bob/undelete", "", ""},
		"admin approve bob":                                  {"PATCH " + users + "/bob", "", `{"registration":"Approved"}`},
		"admin reject bob":                                   {"PATCH " + users + "/bob", "", `{"registration":"Rejected"}`},
		"admin reject bob --reason no-guests":                {"PATCH " + users + "/bob", "", `{"registration":"Rejected","rejectionReason":"no-guests"}`},
		"admin quota user bob 20":                            {"PATCH " + users + "/bob", "", `{"orgQuota":20}`},
		"admin quota user bob default":                       {"PATCH " + users + "/bob", "", `{"orgQuota":null}`},
		"admin quota org ACME 7":                             {"PATCH " + orgs + "/" + orgUUID, "", `{"workspaceQuota":7}`},
		"admin quota org " + otherOrg + " default":           {"PATCH " + orgs + "/" + otherOrg, "", `{"workspaceQuota":null}`},
		"admin quota storage ACME bytes 10Gi":                {"PATCH " + orgs + "/" + orgUUID, "", `{"storage":{"bytes":"10Gi"}}`},
		"admin quota storage ACME workspace-crds 7":          {"PATCH " + orgs + "/" + orgUUID, "", `{"storage":{"workspaceCRDs":7}}`},
		"admin quota storage ACME workspace-objects default": {"PATCH " + orgs + "/" + orgUUID, "", `{"storage":{"workspaceObjects":null}}`},
		"admin quota storage ACME workspace-bytes default":   {"PATCH " + orgs + "/" + orgUUID, "", `{"storage":{"workspaceBytes":null}}`},
		"admin quota storage ACME workspace-roles 9":         {"PATCH " + orgs + "/" + orgUUID, "", `{"storage":{"workspaceRoles":9}}`},
		"admin quota storage ACME workspace-apibindings 9":   {"PATCH " + orgs + "/" + orgUUID, "", `{"storage":{"workspaceAPIBindings":9}}`},
		"admin orgs get ACME":                                {"GET " + orgs + "/" + orgUUID, "", ""},
		"admin orgs undelete ACME":                           {"POST " + orgs + "/" + orgUUID + "/undelete", "", ""},
		"admin orgs add-admin ACME bob --reason left":        {"POST " + orgs + "/" + orgUUID + "/admins", "", `{"userRef":{"name":"bob"},"reason":"left"}`},
		"admin orgs delete ACME -y":                          {"DELETE " + orgs + "/" + orgUUID, "", ""},
		"admin deletions":                                    {"GET /api/admin/deletions", "limit=500", ""},
		"admin sessions bob":                                 {"GET " + users + "/bob/sessions", "limit=500", ""},
		"admin sessions end bob " + tokenID:                  {"DELETE " + users + "/bob/sessions/" + tokenID, "", ""},
		"admin sessions end bob --all":                       {"DELETE " + users + "/bob/sessions", "all=true", ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.login(t)
			b.answer("GET "+orgs, http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
			calls := b.record(t, c.route, http.StatusOK, `{"items":[],"name":"bob"}`)
			code, _, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.Equal(t, []call{{query: c.query, body: c.body}}, *calls)
		})
	}
	b := newBed(t)
	b.login(t)
	calls := b.record(t, "GET "+orgs, http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME","workspaceQuota":{"limit":50,"used":3}}]}`)
	code, out, errOut := b.run(t, "admin", "orgs", "--personal", "false")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "3/50")
	require.Equal(t, "limit=500&personal=false", (*calls)[0].query)
	b = newBed(t)
	b.login(t)
	b.answer("GET "+orgs, http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","storage":{"bytes":"10Gi","workspaceBytes":"1Gi","workspaceObjects":20000}}]}`)
	code, out, errOut = b.run(t, "admin", "orgs", "-o", "wide")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "bytes=10Gi,workspaceBytes=1Gi,workspaceObjects=20000")
}

func TestAdmin_refusesHalfCommands(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	hits := len(b.hits)
	for _, args := range []string{
		"admin users get", "admin approve", "admin approve ..", "admin quota user bob", "admin quota user bob 0", "admin quota user bob many", "admin quota storage ACME", "admin quota storage ACME size 7", "admin quota storage ACME workspace-crds 1Gi", "admin quota org ACME -1",
		"admin sessions", "admin sessions end bob", "admin sessions end bob x", "admin sessions end bob " + tokenID + " --all",
		"admin users delete bob", "admin orgs delete ACME",
	} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, "%s: %s", args, errOut)
	}
	require.Len(t, b.hits, hits, "the hub was not asked")
	b.answer("GET /api/admin/users/bob", http.StatusNotFound, `{"kind":"Status","message":"there is no person of this name"}`)
	code, _, errOut := b.run(t, "admin", "users", "get", "bob")
	require.Equal(t, 1, code)
	require.Equal(t, "kedge: there is no person of this name; to see what there is, run: kedge admin users, or kedge admin orgs\n", errOut)
}

func TestAdmin_asksBeforeItDeletes(t *testing.T) {
	t.Parallel()
	for args, c := range map[string][2]string{
		"admin users delete bob": {"DELETE /api/users/bob", "bob"},
		"admin orgs delete ACME": {"DELETE /api/admin/orgs/" + orgUUID, "ACME"},
	} {
		b := newBed(t)
		b.login(t)
		b.answer("GET /api/admin/orgs", http.StatusOK, `{"items":[{"uuid":"`+orgUUID+`","displayName":"ACME"}]}`)
		calls := b.record(t, c[0], http.StatusOK, `{"name":"x"}`)
		code, _, errOut := b.runAt(t, "y\n", strings.Fields(args)...)
		require.Equal(t, 1, code)
		require.Contains(t, errOut, "nothing was done")
		require.Empty(t, *calls)
		code, _, errOut = b.runAt(t, c[1]+"\n", strings.Fields(args)...)
		require.Zero(t, code, errOut)
		require.Len(t, *calls, 1)
	}
}
