package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	parts    = `"sources":[{"source":"hand","role":"member"},{"source":"group:1","role":"member"}]`
	bob      = `{"user":"bob","displayName":"Bob B","role":"member","scope":"org","since":"2026-11-02T00:00:00Z","phase":"Ready","active":true,` + parts + `}`
	bobInWeb = `{"user":"bob","displayName":"Bob B","role":"member","scope":"workspace","roles":[{"name":"view"},{"name":"audit"}],` +
		`"sudo":true,"since":"2026-11-02T00:00:00Z","phase":"Ready","active":false,` + parts + `}`
	otherOrg = "11111111-2222-4333-8444-555555555555"
	otherWS  = "66666666-2222-4333-8444-555555555555"
)

func TestMembersAreListedInEveryFormat(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	org := b.record(t, "GET "+orgPath+"/members", http.StatusOK, `{"items":[`+bob+`],"continue":""}`)
	ws := b.record(t, "GET "+wsPath+"/members", http.StatusOK, `{"items":[`+bobInWeb+`],"continue":""}`)
	for _, args := range []string{"members", "members list", "workspaces members", "workspaces members list", "ws member list"} {
		group := strings.Fields(args)
		code, out, errOut := b.run(t, group...)
		require.Zero(t, code, errOut)
		if group[0] == "members" {
			require.Equal(t, "USER   DISPLAY NAME   ROLE     SINCE                  PHASE   ACTIVE   END\n"+
				"bob    Bob B          member   2026-11-02T00:00:00Z   Ready   true     \n", out)
		} else {
			require.Equal(t, "USER   DISPLAY NAME   ROLE     MANAGER   SCOPE       ROLES        SUDO   SINCE                  PHASE   ACTIVE   END\n"+
				"bob    Bob B          member             workspace   view,audit   true   2026-11-02T00:00:00Z   Ready   false    \n", out)
		}
		_, out, _ = b.run(t, append(group, "-o", "wide")...)
		require.Regexp(t, `END +THROUGH\n(?s).* hand,group:1\n$`, out)
		_, out, _ = b.run(t, append(group, "-o", "name")...)
		require.Equal(t, "bob\n", out)
		_, out, _ = b.run(t, append(group, "-o", "json")...)
		require.Contains(t, out, `"user": "bob"`)
		_, out, _ = b.run(t, append(group, "-o", "yaml")...)
		require.Contains(t, out, "user: bob\n")
		code, _, _ = b.run(t, append(group, "-o", "xml")...)
		require.Equal(t, 2, code)
		code, _, _ = b.run(t, append(group, "extra")...)
		require.Equal(t, 2, code)
	}
	for _, c := range *org {
		require.Equal(t, call{query: "limit=500", org: orgUUID}, c)
	}
	for _, c := range *ws {
		require.Equal(t, call{query: "limit=500", org: orgUUID, workspace: wsUUID}, c)
	}
}

func TestFlagsOverrideTheChosenOrganizationAndWorkspace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	org := b.record(t, "GET /api/orgs/"+otherOrg+"/members", http.StatusOK, `{"items":[]}`)
	ws := b.record(t, "GET "+orgPath+"/workspaces/"+otherWS+"/members", http.StatusOK, `{"items":[]}`)
	both := b.record(t, "GET /api/orgs/"+otherOrg+"/workspaces/"+otherWS+"/members", http.StatusOK, `{"items":[]}`)
	for _, args := range [][]string{
		{"members", "--org", otherOrg},
		{"workspaces", "members", "--workspace", otherWS},
		{"workspaces", "members", "list", "--org", otherOrg, "--workspace", otherWS},
	} {
		code, _, errOut := b.run(t, args...)
		require.Zero(t, code, errOut)
	}
	require.Equal(t, []call{{"limit=500", otherOrg, "", ""}}, *org)
	require.Equal(t, []call{{"limit=500", orgUUID, otherWS, ""}}, *ws)
	require.Equal(t, []call{{"limit=500", otherOrg, otherWS, ""}}, *both)

	for name, c := range map[string]struct {
		args string
		code int
		says string
	}{
		"an unknown name for --org":                 {"members --org NONE", 1, "kedge orgs list"},
		"a path for --org":                          {"workspaces members --org ..", 1, "kedge orgs list"},
		"a path for --workspace":                    {"workspaces members --workspace ../members", 1, "kedge workspaces list"},
		"the chosen workspace of another org":       {"workspaces members --org " + otherOrg, 1, "no workspace is chosen; give --workspace"},
		"a kubeconfig for another org's workspace":  {"kubeconfig --org " + otherOrg, 1, "no workspace is chosen"},
		"leaving the chosen workspace of other org": {"workspaces leave --org " + otherOrg, 1, "no workspace is chosen; name one"},
	} {
		code, out, errOut := b.run(t, strings.Fields(c.args)...)
		require.Equal(t, c.code, code, "%s: %s", name, errOut)
		require.Empty(t, out, name)
		require.Contains(t, errOut, c.says, name)
	}
}

func TestMembersNeedAChoice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	for _, args := range []string{"members", "members add bob", "workspaces members", "workspaces leave"} {
		code, _, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Contains(t, errOut, "no organization is chosen; give --org, or run: kedge orgs use NAME", args)
	}
	code, _, errOut := b.run(t, "orgs", "leave")
	require.Equal(t, 1, code)
	require.Equal(t, "kedge: no organization is chosen; name one, as shown by: kedge orgs list\n", errOut)
}

func TestMembersAddAndSetRoleSendWhatWasSaidAndNothingElse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"members add bob":                                              `{"userRef":{"name":"bob"},"role":"member"}`,
		"members add bob --role admin":                                 `{"userRef":{"name":"bob"},"role":"admin"}`,
		"members set-role bob admin":                                   `{"role":"admin"}`,
		"members set-role bob viewer":                                  `{"role":"viewer"}`,
		"workspaces members add bob --role viewer":                     `{"userRef":{"name":"bob"},"role":"viewer"}`,
		"workspaces members add bob":                                   `{"userRef":{"name":"bob"},"role":"member"}`,
		"workspaces members add bob --roles view,audit --sudo":         `{"userRef":{"name":"bob"},"role":"member","roles":[{"name":"view"},{"name":"audit"}],"sudo":true}`,
		"workspaces members set-role bob member":                       `{"role":"member"}`,
		"workspaces members add bob --roles dev/view,audit":            `{"userRef":{"name":"bob"},"role":"member","roles":[{"name":"view","namespace":"dev"},{"name":"audit"}]}`,
		"workspaces members set-role bob manager":                      `{"role":null,"manager":true}`,
		"workspaces members set-role bob member --manager=false":       `{"role":"member","manager":false}`,
		"workspaces members set-role bob member --roles= --sudo=false": `{"role":"member","roles":[],"sudo":false}`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			target, answer, headers := orgPath, bob, call{org: orgUUID}
			if strings.HasPrefix(args, "workspaces") {
				target, answer, headers.workspace = wsPath, bobInWeb, wsUUID
			}
			added := b.record(t, "POST "+target+"/members", http.StatusCreated, answer)
			set := b.record(t, "PATCH "+target+"/members/bob", http.StatusOK, answer)
			code, out, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.Contains(t, out, "Bob B")
			calls := append(*added, *set...)
			require.Len(t, calls, 1)
			require.JSONEq(t, want, calls[0].body)
			calls[0].body = ""
			require.Equal(t, headers, calls[0])
			code, out, _ = b.run(t, append(strings.Fields(args), "-o", "name")...)
			require.Zero(t, code)
			require.Equal(t, "bob\n", out)
		})
	}
}

func TestAddingAMemberAgainSucceedsAndAnotherRoleIsExplained(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("POST "+orgPath+"/members", http.StatusOK, bob)
	b.mux.HandleFunc("POST "+wsPath+"/members", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusConflict, "bob is a member with the role member")
	})
	code, out, errOut := b.run(t, "members", "add", "bob", "-o", "name")
	require.Zero(t, code)
	require.Equal(t, "bob\n", out)
	require.Equal(t, "bob is a member already.\n", errOut)
	code, out, errOut = b.run(t, "workspaces", "members", "add", "bob", "--role", "admin")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "kedge: bob is a member with the role member\n")
	require.Contains(t, errOut, "kedge workspaces members set-role bob admin --org "+orgUUID+" --workspace "+wsUUID+"\n")
}

func TestMembersRemoveAndLeave(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		route string
		code  int
		call  call
		out   string
	}{
		"members remove bob":            {orgPath + "/members/bob", 204, call{org: orgUUID}, "Removed bob from the organization.\n"},
		"members remove bob --cascade":  {orgPath + "/members/bob", 204, call{query: "cascade=true", org: orgUUID}, "Removed bob from the organization.\n"},
		"members rm bob":                {orgPath + "/members/bob", 202, call{org: orgUUID}, "The removal of bob is still being carried out; to see who is left, run: kedge members list\n"},
		"workspaces members remove bob": {wsPath + "/members/bob", 204, call{org: orgUUID, workspace: wsUUID}, "Removed bob from the workspace.\n"},
		"orgs leave":                    {orgPath + "/memberships/me", 204, call{org: orgUUID}, "Left organization " + orgUUID + ".\n"},
		"orgs leave ACME --cascade":     {orgPath + "/memberships/me", 204, call{query: "cascade=true", org: orgUUID}, "Left organization ACME (" + orgUUID + ").\n"},
		"orgs leave " + orgUUID:         {orgPath + "/memberships/me", 202, call{org: orgUUID}, "Leaving organization ACME (" + orgUUID + "); the hub is still carrying it out.\n"},
		"workspaces leave":              {wsPath + "/memberships/me", 204, call{org: orgUUID, workspace: wsUUID}, "Left workspace " + wsUUID + ".\n"},
		"workspaces leave Web":          {wsPath + "/memberships/me", 204, call{org: orgUUID, workspace: wsUUID}, "Left workspace Web (" + wsUUID + ").\n"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			calls := b.record(t, "DELETE "+want.route, want.code, "")
			code, out, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.Equal(t, want.out, out)
			require.Equal(t, []call{want.call}, *calls)
			// What was left is not worked in any more; what was not, is.
			left := strings.Contains(args, "leave")
			leftOrg := strings.HasPrefix(args, "orgs")
			require.Equal(t, !leftOrg, strings.Contains(b.chosen(t), orgUUID))
			require.Equal(t, !left, strings.Contains(b.chosen(t), wsUUID))
		})
	}
}

func TestARefusedRemovalSaysWhatStandsAgainstIt(t *testing.T) {
	t.Parallel()
	inWorkspaces := `{"kind":"Status","code":409,"reason":"Conflict","message":"repeat the request with ?cascade=true","details":{"causes":[` +
		`{"reason":"WorkspaceMembership","field":"` + wsUUID + `","message":"Web"},{"reason":"WorkspaceMembership","field":"` + otherWS + `","message":"Shop"}]}}`
	sole := `{"kind":"Status","code":409,"message":"the last admin stays","details":{"causes":[{"reason":"SoleAdmin","message":"make bob an admin first"}]}}`
	soleTwice := `{"kind":"Status","code":409,"message":"make bob an admin first","details":{"causes":[{"reason":"SoleAdmin","message":"make bob an admin first"}]}}`
	both := `{"kind":"Status","code":409,"message":"the only admin","details":{"causes":[{"reason":"SoleAdmin","message":"the only admin"},` +
		`{"reason":"WorkspaceMembership","field":"` + wsUUID + `","message":"Web"}]}}`
	missing := `{"kind":"Status","code":404,"message":"bob is not a member"}`
	promote := "\nTo make somebody an admin, run: kedge members set-role USER admin --org " + orgUUID + "\n"
	list := " still a member of workspaces in this organization:\n  " + wsUUID + "   Web\n  " + otherWS + "   Shop\nGive --cascade to end those memberships, too.\n"
	for name, c := range map[string]struct {
		args, route string
		code        int
		body, want  string
	}{
		"removal, in workspaces":  {"members remove bob", "DELETE " + orgPath + "/members/bob", 409, inWorkspaces, "kedge: bob is" + list},
		"leaving, in workspaces":  {"orgs leave", "DELETE " + orgPath + "/memberships/me", 409, inWorkspaces, "kedge: you are" + list},
		"removal of the admin":    {"members remove bob", "DELETE " + orgPath + "/members/bob", 409, sole, "kedge: the last admin stays\nmake bob an admin first" + promote},
		"leaving as the admin":    {"orgs leave", "DELETE " + orgPath + "/memberships/me", 409, soleTwice, "kedge: make bob an admin first" + promote},
		"leaving as both":         {"orgs leave", "DELETE " + orgPath + "/memberships/me", 409, both, "kedge: the only admin" + promote},
		"demotion of the admin":   {"members set-role bob member", "PATCH " + orgPath + "/members/bob", 409, sole, "kedge: the last admin stays\nmake bob an admin first" + promote},
		"removal of a stranger":   {"members remove bob", "DELETE " + orgPath + "/members/bob", 404, missing, "kedge: bob is not a member; to see who is a member, run: kedge members list\n"},
		"promotion of a stranger": {"workspaces members set-role bob admin", "PATCH " + wsPath + "/members/bob", 404, missing, "kedge: bob is not a member; to see who is a member, run: kedge workspaces members list\n"},
		"an unknown organization": {"orgs leave Nothing", "GET /nothing", 404, missing, "kedge: there is no organization with the UUID or the name \"Nothing\"; to see what there is, run: kedge orgs list\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			before := b.chosen(t)
			b.answer(c.route, c.code, c.body)
			code, out, errOut := b.run(t, strings.Fields(c.args)...)
			require.Equal(t, 1, code)
			require.Empty(t, out)
			require.Equal(t, c.want, errOut)
			require.Equal(t, before, b.chosen(t), "what was not left stays chosen")
		})
	}
}

func TestReceiptsAreShown(t *testing.T) {
	t.Parallel()
	const (
		receipt = `{"streamsCut":2,"hubRefusedAt":"2026-11-21T04:05:01.25Z","kcpRefusedAt":%s}`
		hub     = "The hub refuses it since 2026-11-21T04:05:01.25Z and ended 2 open requests"
		kcp     = ", kcp refuses it since 2026-11-21T04:05:01.5Z"
	)
	followed, judged := fmt.Sprintf(receipt, `"2026-11-21T04:05:01.5Z"`), fmt.Sprintf(receipt, "null")
	for args, want := range map[string]struct{ route, body, shown string }{
		"members remove bob":                            {"DELETE " + orgPath + "/members/bob", followed, hub + kcp},
		"workspaces members remove bob":                 {"DELETE " + wsPath + "/members/bob", followed, hub + kcp},
		"orgs leave":                                    {"DELETE " + orgPath + "/memberships/me", followed, hub + kcp},
		"workspaces members set-role bob viewer":        {"PATCH " + wsPath + "/members/bob", `{"user":"bob","receipt":` + followed + `}`, hub + kcp},
		"bots tokens revoke --all --yes " + botUUID:     {"DELETE " + botPath + "/tokens", judged, hub},
		"bots tokens revoke " + botUUID + " " + tokenID: {"DELETE " + botPath + "/tokens/" + tokenID, judged, hub},
		"bots delete --yes " + botUUID:                  {"DELETE " + botPath, judged, hub},
		"sessions end " + sessionID:                     {"DELETE /api/users/me/sessions/" + sessionID, judged, hub},
		"sessions end --all":                            {"DELETE /api/users/me/sessions", judged, hub},
		"admin sessions end bob --all":                  {"DELETE /api/admin/users/bob/sessions", judged, hub},
		"bots set-role " + botUUID + " viewer":          {"PATCH " + botPath, `{"uuid":"` + botUUID + `","receipt":` + judged + `}`, hub},
		"admin reject bob":                              {"PATCH /api/admin/users/bob", `{"name":"bob","receipt":` + judged + `}`, hub},
		"requests revoke " + botUUID:                    {"POST " + orgPath + "/requests/" + botUUID + "/revoke", `{"id":"x","receipt":` + judged + `}`, hub},
		"orgs groups remove " + botUUID:                 {"DELETE " + orgPath + "/groups/" + botUUID, judged, hub},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			calls := b.record(t, want.route, http.StatusOK, want.body)
			code, _, errOut := b.run(t, strings.Fields(args)...)
			require.Zero(t, code, errOut)
			require.Len(t, *calls, 1)
			require.Contains(t, errOut, want.shown+".\n")
		})
	}
}

func TestMembersRemove_printsTheReceiptAsJSON(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.record(t, "DELETE "+orgPath+"/members/bob", http.StatusAccepted, `{"streamsCut":0,"hubRefusedAt":null,"kcpRefusedAt":null}`)
	code, out, errOut := b.run(t, "members", "remove", "bob", "-o", "json")
	require.Zero(t, code, errOut)
	require.JSONEq(t, `{"user":"bob","orgUUID":"`+orgUUID+`","phase":"Terminating","receipt":{"streamsCut":0,"hubRefusedAt":null,"kcpRefusedAt":null}}`, out)
	require.NotContains(t, errOut, "refuses it since")
}

func TestANameThatWouldMakeAnotherPathIsNeverSent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	removed := b.record(t, "DELETE "+orgPath+"/members/{user}", http.StatusNoContent, "")
	before := len(b.hits)
	for _, user := range []string{"..", ".", ""} {
		for _, args := range [][]string{
			{"members", "remove", user}, {"members", "add", user}, {"members", "set-role", user, "admin"},
			{"workspaces", "members", "remove", user}, {"workspaces", "members", "add", user},
		} {
			code, _, errOut := b.run(t, args...)
			require.Equal(t, 2, code, args)
			require.Contains(t, errOut, "kedge users search", args)
		}
	}
	require.Len(t, b.hits, before, "the hub was not asked")
	// A slash stays inside its segment, and a plain name gets through.
	for _, user := range []string{"a/../../x", "bob"} {
		code, _, errOut := b.run(t, "members", "remove", user)
		require.Zero(t, code, errOut)
	}
	require.Len(t, *removed, 2)
}

func TestMembersCommandLineErrorsEndWithCode2(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	hits := len(b.hits)
	for _, args := range []string{
		"members add", "members add a b", "members remove", "members set-role bob", "members set-role", "members nonsense",
		"workspaces members remove bob --cascade", "members add bob --sudo", "orgs leave a b", "workspaces leave --cascade",
		"members add bob --role owner", "members add bob --role manager", "members set-role bob manager", "members set-role bob owner", "workspaces members add bob --role Admin", "workspaces members set-role bob owner",
		"members remove bob -o xml", "orgs leave -o tree",
	} {
		code, out, errOut := b.run(t, strings.Fields(args)...)
		require.Equal(t, 2, code, args)
		require.Empty(t, out, args)
		require.Contains(t, errOut, "see --help", args)
	}
	require.Len(t, b.hits, hits, "the hub was not asked")
}
