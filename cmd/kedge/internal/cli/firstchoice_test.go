package cli_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

const personalUUID = "6c1a4f0e-2f7c-4bb8-9d53-0c1f0a8f4d11"

// loggedIn logs in with memberships, and returns what is chosen and what was said.
func loggedIn(t *testing.T, me, rows string) (chosen, said string) {
	t.Helper()
	b := newBed(t)
	b.me = me
	b.answer("GET /api/users/me/memberships", http.StatusOK, `{"items":[`+rows+`]}`)
	code, out, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"), "--token-file", b.file("token"))
	require.Zero(t, code, errOut)
	return b.chosen(t), out
}

func TestLogin_choosesWhereToWork(t *testing.T) {
	t.Parallel()
	const (
		org       = `{"orgUUID":"` + orgUUID + `","role":"member"}`
		workspace = `{"orgUUID":"` + orgUUID + `","workspaceUUID":"` + wsUUID + `","role":"member"}`
		other     = `{"orgUUID":"` + orgUUID + `","workspaceUUID":"` + personalUUID + `","role":"member"}`
		plain     = `{"name":"alice","phase":"Ready"}`
		personal  = `{"name":"alice","phase":"Ready","personalOrg":"` + personalUUID + `","defaultWorkspace":"` + botUUID + `"}`
	)
	for name, c := range map[string]struct{ me, rows, org, workspace, says string }{
		"the only workspace":       {plain, org + "," + workspace, orgUUID, wsUUID, "kedge kubeconfig --merge --use"},
		"the personal one":         {personal, org + "," + workspace + "," + other, personalUUID, botUUID, "kedge kubeconfig --merge --use"},
		"the only organization":    {plain, org, orgUUID, "", "kedge workspaces create NAME"},
		"several, none personal":   {plain, workspace + "," + other + `,{"orgUUID":"` + botUUID + `","role":"admin"}`, "", "", "kedge orgs create NAME"},
		"nothing at all":           {plain, "", "", "", "kedge orgs create NAME"},
		"no approval":              {`{"name":"alice","registration":"Pending"}`, workspace, "", "", "waits for approval"},
		"an account being deleted": {deletedMe, workspace, "", "", "kedge me undelete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, said := loggedIn(t, c.me, c.rows)
			require.Contains(t, said, c.says)
			for key, want := range map[string]string{"org": c.org, "workspace": c.workspace} {
				if want == "" {
					require.NotContains(t, chosen, `"`+key+`":`)
				} else {
					require.Regexp(t, `"`+key+`": ?"`+want+`"`, chosen)
				}
			}
		})
	}
}

// The hub makes the personal organization of a new person after it has answered.
func TestLogin_waitsForThePersonalOrganization(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	asked := 0
	b.me = `{"name":"alice","phase":"Progressing"}`
	b.mux.HandleFunc("GET /api/users/me/memberships", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			b.me = `{"name":"alice","phase":"Ready","personalOrg":"` + orgUUID + `","defaultWorkspace":"` + wsUUID + `"}`
		}
		_, _ = io.WriteString(w, `{"items":[]}`)
	})
	code, _, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"), "--token-file", b.file("token"))
	require.Zero(t, code, errOut)
	require.Contains(t, b.chosen(t), wsUUID)
}

func TestLogin_keepsTheChoice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.inWorkspace(t)
	b.answer("GET /api/users/me/memberships", http.StatusOK, `{"items":[{"orgUUID":"`+personalUUID+`","workspaceUUID":"`+botUUID+`","role":"member"}]}`)
	b.login(t)
	require.Contains(t, b.chosen(t), wsUUID)
	require.NotContains(t, b.chosen(t), personalUUID)
}

// Everybody who may search for people can add a new person to a workspace of their own, and would read what the
// person's first kubectl writes.
func TestLogin_aStrangerDoesNotChooseWhereANewPersonWorks(t *testing.T) {
	t.Parallel()
	const (
		stranger = `{"orgUUID":"` + orgUUID + `","orgDisplayName":"Your\u202e team","orgFirstAdmin":"mallory",` +
			`"workspaceUUID":"` + wsUUID + `","workspaceDisplayName":"de\u001b[2Kfault","role":"viewer"}`
		own      = `{"orgUUID":"` + botUUID + `","orgFirstAdmin":"alice","role":"admin"}`
		ownWork  = `{"orgUUID":"` + botUUID + `","orgFirstAdmin":"alice","workspaceUUID":"` + personalUUID + `","role":"admin"}`
		plain    = `{"name":"alice","phase":"Ready"}`
		personal = `{"name":"alice","phase":"Ready","personalOrg":"` + personalUUID + `","defaultWorkspace":"` + botUUID + `"}`
		bare     = `{"name":"alice","phase":"Ready","personalOrg":"` + personalUUID + `"}`
	)
	for name, c := range map[string]struct{ me, rows, chosen string }{
		"a personal place":                     {personal, stranger, botUUID},
		"a personal place without a workspace": {bare, stranger, personalUUID},
		"an organization of her own":           {plain, stranger + "," + own, botUUID},
		"a workspace of her own":               {plain, stranger + "," + own + "," + ownWork, personalUUID},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, said := loggedIn(t, c.me, c.rows)
			require.Contains(t, chosen, c.chosen)
			require.NotContains(t, chosen, wsUUID)
			require.NotContains(t, said, wsUUID)
		})
	}
	chosen, said := loggedIn(t, plain, stranger)
	require.Contains(t, chosen, wsUUID, "there is no other place")
	require.Contains(t, said, `You work in the workspace "de�[2Kfault" (`+wsUUID+`) of the organization "Your� team" (`+orgUUID+`), as viewer.`)
}

// What others made is there before the personal place of a new person.
func TestLogin_aStrangerIsNotFasterThanThePersonalPlace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	asked := 0
	b.me = `{"name":"alice","phase":"Progressing"}`
	b.mux.HandleFunc("GET /api/users/me/memberships", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			b.me = `{"name":"alice","phase":"Ready","personalOrg":"` + personalUUID + `","defaultWorkspace":"` + botUUID + `"}`
		}
		_, _ = io.WriteString(w, `{"items":[{"orgUUID":"`+orgUUID+`","workspaceUUID":"`+wsUUID+`","role":"member"}]}`)
	})
	code, _, errOut := b.run(t, "login", "--server", b.URL, "--ca-file", b.file("ca.crt"), "--token-file", b.file("token"))
	require.Zero(t, code, errOut)
	require.Contains(t, b.chosen(t), botUUID)
	require.NotContains(t, b.chosen(t), wsUUID)
}
