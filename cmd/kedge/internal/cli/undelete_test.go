package cli_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	goneOrg = "22222222-2222-4333-8444-555555555555"
	goneWS  = "33333333-2222-4333-8444-555555555555"
)

// withDeleted is a hub where an organization, and a workspace of the chosen one,
// are soft-deleted; a second workspace shares its name with one elsewhere.
func withDeleted(t *testing.T) (b *bed, listed *[]call) {
	t.Helper()
	b = newBed(t)
	b.inWorkspace(t)
	deleted := `"role":"admin","softDeletedAt":"2026-11-20T00:00:00Z","purgeAt":"2026-12-20T00:00:00Z"}`
	listed = b.record(t, "GET /api/users/me/memberships", http.StatusOK, `{"items":[`+strings.Join([]string{
		`{"orgUUID":"` + orgUUID + `","orgDisplayName":"ACME","role":"admin"}`,
		`{"orgUUID":"` + orgUUID + `","orgDisplayName":"ACME","workspaceUUID":"` + wsUUID + `","workspaceDisplayName":"Web","role":"admin"}`,
		`{"orgUUID":"` + orgUUID + `","orgDisplayName":"ACME","workspaceUUID":"` + goneWS + `","workspaceDisplayName":"Shop",` + deleted,
		`{"orgUUID":"` + goneOrg + `","orgDisplayName":"Gone",` + deleted,
		`{"orgUUID":"` + goneOrg + `","orgDisplayName":"Gone","workspaceUUID":"` + otherWS + `","workspaceDisplayName":"Shop",` + deleted,
	}, ",")+`]}`)
	return b, listed
}

func TestDeletedOnesAreListed(t *testing.T) {
	t.Parallel()
	b, listed := withDeleted(t)
	code, out, errOut := b.run(t, "orgs", "list", "--deleted")
	require.Zero(t, code, errOut)
	require.Equal(t, "UUID                                   DISPLAY NAME   ROLE    DELETED                PURGE AT\n"+goneOrg+"   Gone           admin   2026-11-20T00:00:00Z   2026-12-20T00:00:00Z\n", out)
	code, out, _ = b.run(t, "workspaces", "list", "--deleted", "-o", "name")
	require.Zero(t, code)
	require.Equal(t, goneWS+"\n", out, "of the chosen organization alone")
	code, out, _ = b.run(t, "workspaces", "list", "--deleted", "-o", "json")
	require.Zero(t, code)
	require.JSONEq(t, `{"items":[{"uuid":"`+goneWS+`","displayName":"Shop","role":"admin","deletionRequestedAt":"2026-11-20T00:00:00Z","purgeAt":"2026-12-20T00:00:00Z"}]}`, out)
	code, out, _ = b.run(t, "orgs", "list", "-o", "name")
	require.Zero(t, code)
	require.Equal(t, orgUUID+"\n", out)
	require.Equal(t, []call{{query: "deleted=true"}, {query: "deleted=true"}, {query: "deleted=true"}}, *listed)
	code, _, errOut = b.run(t, "workspaces", "list", "--deleted", "--org", goneOrg)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, `organization "Gone" is deleted; first run: kedge orgs undelete `+goneOrg)
}

// withOthers is withDeleted for an admin of the organization, to whom the hub lists the workspaces of others, too, with
// the role that they have in each.
func withOthers(t *testing.T) *bed {
	t.Helper()
	b, _ := withDeleted(t)
	gone := `"phase":"Terminating","createdBy":"bob","deletionRequestedAt":"2026-11-20T00:00:00Z","purgeAt":"2026-12-20T00:00:00Z"}`
	before := b.mux
	b.mux = http.NewServeMux()
	b.mux.Handle("/", before)
	b.mux.HandleFunc("GET "+orgPath+"/workspaces", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("deleted") != "true" {
			before.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"uuid":"`+otherWS+`","displayName":"Theirs","role":"admin",`+gone+
			`,{"uuid":"`+goneWS+`","displayName":"Shop","role":"member",`+gone+`]}`)
	})
	return b
}

func TestDeletedWorkspacesOfOthersAreListed(t *testing.T) {
	t.Parallel()
	b := withOthers(t)
	code, out, errOut := b.run(t, "workspaces", "list", "--deleted")
	require.Zero(t, code, errOut)
	require.Equal(t, `UUID                                   DISPLAY NAME   ROLE     DELETED                PURGE AT
`+otherWS+`   Theirs         admin    2026-11-20T00:00:00Z   2026-12-20T00:00:00Z
`+goneWS+`   Shop           member   2026-11-20T00:00:00Z   2026-12-20T00:00:00Z
`, out, "each once, with the role that the hub names")
	code, out, _ = b.run(t, "orgs", "list", "--deleted", "-o", "name")
	require.Zero(t, code)
	require.Equal(t, goneOrg+"\n", out)

	calls := b.record(t, "POST "+orgPath+"/workspaces/"+otherWS+"/undelete", http.StatusOK,
		`{"uuid":"`+otherWS+`","displayName":"Theirs","phase":"Ready"}`)
	code, _, errOut = b.run(t, "workspaces", "undelete", "Theirs", "--yes")
	require.Zero(t, code, errOut)
	require.Equal(t, []call{{org: orgUUID, workspace: otherWS}}, *calls)

	code, out, _ = b.run(t, "__complete", "workspaces", "undelete", "")
	require.Zero(t, code)
	require.Equal(t, "Theirs\t"+otherWS+"\n:4\n", out, "what a member cannot bring back is not offered")
	code, out, _ = b.run(t, "__complete", "workspaces", "undelete", "Theirs", "")
	require.Zero(t, code)
	require.Equal(t, ":4\n", out)
	code, out, _ = b.run(t, "__complete", "orgs", "undelete", "")
	require.Zero(t, code)
	require.Equal(t, "Gone\t"+goneOrg+"\n:4\n", out)
}

func TestDeletedWorkspacesAreNotListedInPart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("GET "+orgPath+"/workspaces", http.StatusForbidden,
		`{"kind":"Status","message":"you have no membership there","code":403}`)
	b.answer("GET /api/orgs", http.StatusOK, `{"items":[]}`)
	code, out, errOut := b.run(t, "workspaces", "list", "--deleted", "--org", orgUUID)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "you have no membership there")
}

func TestUndeleteAsksAndBringsBack(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		path, answer, asks, out string
		headers                 call
	}{
		"orgs undelete Gone": {"/api/orgs/" + goneOrg, `{"uuid":"` + goneOrg + `","displayName":"Gone","phase":"Ready"}`,
			`Bring back organization "Gone" (` + goneOrg + `)?`, goneOrg, call{org: goneOrg}},
		"orgs undelete " + goneOrg: {"/api/orgs/" + goneOrg, `{"uuid":"` + goneOrg + `","displayName":"Gone","phase":"Ready"}`,
			`Bring back organization "Gone" (` + goneOrg + `)?`, goneOrg, call{org: goneOrg}},
		"workspaces undelete Shop": {orgPath + "/workspaces/" + goneWS, `{"uuid":"` + goneWS + `","displayName":"Shop","phase":"Ready"}`,
			`Bring back workspace "Shop" (` + goneWS + `)?`, goneWS, call{org: orgUUID, workspace: goneWS}},
		// An admin of the organization who is not in it.
		"workspaces undelete " + otherWS: {orgPath + "/workspaces/" + otherWS, `{"uuid":"` + otherWS + `","displayName":"Other","phase":"Ready"}`,
			`Bring back workspace ` + otherWS + `?`, otherWS, call{org: orgUUID, workspace: otherWS}},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b, _ := withDeleted(t)
			calls := b.record(t, "POST "+want.path+"/undelete", http.StatusOK, want.answer)
			for _, typed := range []string{"", "\n", "n\n", "yess\n"} {
				code, out, errOut := b.runAt(t, typed, strings.Fields(args)...)
				require.Equal(t, 1, code)
				require.Empty(t, out)
				require.Contains(t, errOut, want.asks)
				require.Contains(t, errOut, "[y/N] ")
				require.Contains(t, errOut, "nothing was done")
			}
			require.Empty(t, *calls)
			for _, typed := range []string{"y\n", "Yes\n"} {
				code, out, errOut := b.runAt(t, typed, append(strings.Fields(args), "-o", "name")...)
				require.Zero(t, code, errOut)
				require.Equal(t, want.out+"\n", out)
			}
			code, out, errOut := b.run(t, append(strings.Fields(args), "--yes")...)
			require.Zero(t, code, errOut)
			require.Contains(t, out, "Ready")
			require.Contains(t, errOut, "is back.")
			require.NotContains(t, errOut, "[y/N]")
			require.Equal(t, []call{want.headers, want.headers, want.headers}, *calls)
		})
	}
}

func TestUndeleteRefusesWhatItCannotFind(t *testing.T) {
	t.Parallel()
	b, _ := withDeleted(t)
	for args, says := range map[string]string{
		"orgs undelete Nothing --yes": `there is no deleted organization with the name "Nothing"; ` +
			`to see what there is, run: kedge orgs list --deleted`,
		"workspaces undelete .. --yes":                    "kedge workspaces list --deleted",
		"workspaces undelete Shop --yes --org " + goneOrg: "kedge orgs undelete " + goneOrg,
		"orgs undelete --yes " + otherOrg:                 "is it a kedge-hub?",
		"orgs delete Nothing --yes":                       "kedge orgs list",
		"workspaces delete Nothing --yes":                 "kedge workspaces list",
		"orgs use Gone":                                   "kedge orgs list",
	} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Empty(t, out, args)
		require.Contains(t, errOut, says, args)
	}
}

func TestDeletingAndUndeletingTwiceSucceeds(t *testing.T) {
	t.Parallel()
	b, _ := withDeleted(t)
	for args, want := range map[string]struct{ says, out string }{
		"orgs delete Gone":        {`The organization "Gone" (` + goneOrg + `) is deleted already. Until 2026-12-20T00:00:00Z it can be brought back with: kedge orgs undelete ` + goneOrg, goneOrg},
		"workspaces delete Shop":  {"kedge workspaces undelete " + goneWS + " --org " + orgUUID, goneWS},
		"orgs undelete ACME":      {`The organization "ACME" (` + orgUUID + `) is not deleted.`, orgUUID},
		"workspaces undelete Web": {"is not deleted.", wsUUID},
		"me undelete":             {"Your account alice is not deleted.", "alice"},
	} {
		code, out, errOut := b.run(t, append(strings.Fields(args), "--yes", "-o", "name")...)
		require.Zero(t, code, errOut)
		require.Equal(t, want.out+"\n", out, args)
		require.Contains(t, errOut, want.says, args)
	}
	for route := range b.hits {
		require.True(t, strings.HasPrefix(route, "GET "), route)
	}
}
