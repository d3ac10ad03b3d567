package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsNoMoreIsPrintedInEveryFormat(t *testing.T) {
	t.Parallel()
	ofOrg, ofWS := `"orgUUID":"`+orgUUID+`"`, `"orgUUID":"`+orgUUID+`","workspaceUUID":"`+wsUUID+`"`
	for args, want := range map[string]struct{ route, name, says, json string }{
		"members remove bob":            {orgPath + "/members/bob", "bob", "Removed bob from the organization.", `{"user":"bob",` + ofOrg + `}`},
		"members rm bob --cascade":      {orgPath + "/members/bob", "bob", "Removed bob from the organization.", `{"user":"bob",` + ofOrg + `}`},
		"workspaces members remove bob": {wsPath + "/members/bob", "bob", "Removed bob from the workspace.", `{"user":"bob",` + ofWS + `}`},
		"orgs leave":                    {orgPath + "/memberships/me", orgUUID, "Left organization " + orgUUID + ".", `{` + ofOrg + `}`},
		"orgs leave ACME":               {orgPath + "/memberships/me", orgUUID, "Left organization ACME (" + orgUUID + ").", `{` + ofOrg + `}`},
		"workspaces leave":              {wsPath + "/memberships/me", wsUUID, "Left workspace " + wsUUID + ".", `{` + ofWS + `}`},
		"workspaces leave Web":          {wsPath + "/memberships/me", wsUUID, "Left workspace Web (" + wsUUID + ").", `{` + ofWS + `}`},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.inWorkspace(t)
			b.answer("DELETE "+want.route, http.StatusNoContent, "")
			for output, check := range map[string]func(out, errOut string){
				"table": func(out, errOut string) { require.Equal(t, []string{want.says + "\n", ""}, []string{out, errOut}) },
				"name": func(out, errOut string) {
					require.Equal(t, []string{want.name + "\n", want.says + "\n"}, []string{out, errOut})
				},
				"json": func(out, _ string) { require.JSONEq(t, want.json, out) },
				"yaml": func(out, _ string) { require.Contains(t, out, "orgUUID: "+orgUUID+"\n") },
			} {
				b.inWorkspaceAgain(t, "Web")
				code, out, errOut := b.run(t, append(strings.Fields(args), "-o", output)...)
				require.Zero(t, code, errOut)
				check(out, errOut)
			}
		})
	}
}

// A script must not take for gone what is still going.
func TestWhatIsStillBeingEndedIsToldFromWhatIsGone(t *testing.T) {
	t.Parallel()
	for args, route := range map[string]string{
		"members remove bob": orgPath + "/members/bob", "workspaces members remove bob": wsPath + "/members/bob",
		"orgs leave": orgPath + "/memberships/me", "workspaces leave": wsPath + "/memberships/me",
	} {
		b := newBed(t)
		b.inWorkspace(t)
		b.answer("DELETE "+route, http.StatusAccepted, "")
		code, out, errOut := b.run(t, append(strings.Fields(args), "-o", "yaml")...)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "phase: Terminating\n", args)
		require.Contains(t, errOut, "still", args)
	}
}

func TestUsePrintsWhatWasChosenInEveryFormat(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	for args, uuid := range map[string]string{"orgs use ACME": orgUUID, "workspaces use Web": wsUUID} {
		_, out, errOut := b.run(t, append(strings.Fields(args), "-o", "name")...)
		require.Equal(t, uuid+"\n", out)
		require.Contains(t, errOut, "Working in ", args)
		_, out, _ = b.run(t, append(strings.Fields(args), "-o", "json")...)
		require.Contains(t, out, `"uuid": "`+uuid+`"`)
		b.inWorkspaceAgain(t, "Web")
	}
}
