package portal

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// hostile is markup that would run if a page took it for such.
const hostile = `<img src=x onerror=alert(1)>`

// The people of one hub do in a browser what people do, one after the other. Each part goes on
// where the one before it ended.
func TestPortal_isEnoughForEverything(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	operator, bob := s.person(t, admin), s.person(t, "bob")
	alice := &person{Chromium: s.browser, t: t, hub: s.client.URL}
	as := func(t *testing.T) { operator.t, bob.t, alice.t = t, t, t }
	for _, part := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"sign-up waits for approval", func(*testing.T) { approval(operator, alice, bob) }},
		{"organizations and workspaces", func(*testing.T) { places(alice) }},
		{"headers", func(t *testing.T) { wire(t, s, alice) }},
		{"members", func(*testing.T) { members(alice, bob) }},
		{"bots", func(t *testing.T) { bots(t, s, alice) }},
		{"providers", func(t *testing.T) { providers(t, s, alice) }},
		{"catalog", func(t *testing.T) { publishes(t, s, alice, operator) }},
		{"what two people change", func(*testing.T) { conflicts(alice) }},
		{"settings that two people change", func(*testing.T) { settings(alice) }},
		{"activity", func(*testing.T) { activity(alice) }},
		{"past access", func(*testing.T) { pastAccess(alice) }},
		{"usage", func(*testing.T) { usage(alice) }},
		{"requests", func(t *testing.T) { requests(t, s, alice, bob) }},
		{"what a colleague made", func(t *testing.T) { colleagues(t, s, alice) }},
		{"an answer that is late", func(*testing.T) { lateAnswer(alice) }},
		{"an answer that is lost", func(*testing.T) { lostAnswer(alice) }},
		{"a session that ends in the middle", func(*testing.T) { endedSession(alice) }},
		{"deletion and undelete", func(*testing.T) { deletion(alice) }},
		{"account", func(*testing.T) { account(bob) }},
		{"administration", func(t *testing.T) { administration(t, operator) }},
		{"another person in another tab", func(*testing.T) { anotherPerson(alice) }},
		{"keyboard", func(*testing.T) { keyboard(alice) }},
		{"identity provider", func(t *testing.T) { provider(t, s, operator) }},
		{"invitations", func(t *testing.T) { invitations(t, s, alice) }},
		{"pages of the login", func(t *testing.T) { loginPages(t, s) }},
		{"the hub restarts", func(t *testing.T) { restart(t, s, alice) }},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			as(t)
			part.do(t)
			alice.quiet()
		}) {
			t.Logf("what failed in the hub:\n%s", failures(s.hub.Output.String()))
			return
		}
	}
	control(t, alice)
}

func approval(operator, alice, bob *person) {
	alice.open("/")
	alice.At(alice.t, alice.hub+"/ui/sign-in")
	alice.looks("sign-in")
	alice.enterToken("nobody", "/ui/")
	alice.sees("not known here")
	for name, p := range map[string]*person{"alice": alice, "bob": bob} {
		p.enterToken(name, "/ui/")
		p.sees("waits for the approval")
	}
	operator.signIn(admin, "/ui/admin")
	operator.sees("Waiting for approval (2)")
	operator.looks("admin-approval")
	for _, name := range []string{"alice", "bob"} {
		operator.pressIn(name, "Approve")
		operator.Until(operator.t, "![...document.querySelectorAll('tr')].some((r) => r.innerText.includes("+quoted(name)+") && r.innerText.includes('Reject') && r.querySelector('.primary'))")
	}
	operator.misses("Waiting for approval")
	bob.signIn("bob", "/ui/")
}

func places(alice *person) {
	alice.signIn("alice", "/ui/")
	alice.sees("alice's personal")
	alice.looks("organizations")
	alice.press("New organization")
	alice.press("Create")
	alice.sees("This is needed.")
	alice.fills("Name", hostile)
	alice.looks("organization-new")
	alice.press("Create")
	alice.sees("No workspaces yet")
	alice.Until(alice.t, "document.querySelector('h1').textContent === "+quoted(hostile))
	alice.sees("by alice")
	alice.press("New workspace")
	alice.fills("Name", "right\u202eto left")
	alice.press("Create")
	alice.sees("not contain control characters")
	alice.fills("Name", "مساحة العمل")
	alice.press("Create")
	alice.closed()
	alice.Until(alice.t, "document.querySelector('td .badge.ok')")
	alice.looks("organization")
	alice.pressIn("مساحة العمل", "Rename")
	alice.fills("Name", "work")
	alice.press("Rename")
	alice.closed()
	alice.press("work")
	alice.sees("Get in with kubectl")
	alice.sees("Conditions")
	alice.press("Description")
	alice.fills("Description", "What it is for "+hostile)
	alice.press("Save")
	alice.closed()
	alice.sees("What it is for " + hostile)
	alice.looks("workspace")
	downloads(alice, "Download kubeconfig", "kedge")
	alice.Keys(alice.t, "/")
	alice.sees("alice's personal")
	alice.Until(alice.t, "[...document.querySelectorAll('.switcher .second')].length === 2 && [...document.querySelectorAll('.switcher .second')].every((e) => /^created .* by alice$/.test(e.textContent))")
	alice.looks("switcher")
	// The other tab is another place, and the back button leads back.
	alice.press("default")
	alice.Until(alice.t, "document.querySelector('h1').textContent === 'default'")
	alice.Back(alice.t)
	alice.Until(alice.t, "document.querySelector('h1')?.textContent === 'work'")
	other := &person{Chromium: alice.Tab("second"), t: alice.t, hub: alice.hub}
	other.open("/ui/")
	other.press("alice's personal")
	other.sees("default")
	require.NotEqual(alice.t, alice.path(), other.path())
	alice.press("Members")
	alice.sees("Add a member")
	other.press("Members")
	other.sees("alice's personal")
	alice.misses("alice's personal")
}

// downloads requires that a button has the browser save a file with a text.
func downloads(p *person, button, text string) {
	p.t.Helper()
	p.Eval(p.t, "void (window.made = '', window.create = URL.createObjectURL, URL.createObjectURL = (b) => { b.text().then((x) => { window.made = x; }); return window.create.call(URL, b); })", nil)
	p.press(button)
	p.Until(p.t, "window.made.includes('kind: Config') && window.made.includes("+quoted(text)+")")
	p.Eval(p.t, "void (URL.createObjectURL = window.create)", nil)
}

// adds adds somebody in the dialog.
func adds(p *person, name string) {
	p.t.Helper()
	p.chooses(name)
	p.press("Add")
	p.closed()
	p.sees(name)
}

// chooses opens the dialog that adds somebody, and finds them in it.
func (p *person) chooses(name string) {
	p.t.Helper()
	p.press("Add a member")
	p.Fill(p.t, "dialog input[type=search]", name)
	p.Until(p.t, "document.querySelector('.results:not([hidden]) button')")
	p.Click(p.t, ".results button")
	p.sees("Chosen: " + name)
}

func members(alice, bob *person) {
	work := alice.path()
	org := alice.orgPath()
	alice.open(org + "/members")
	alice.sees("Add a member")
	adds(alice, "bob")
	alice.looks("members")
	alice.press("Leave organization")
	alice.press("Leave")
	alice.sees("only admin")
	alice.sees("Somebody has to be able to manage")
	alice.looks("member-only-admin")
	alice.press("Cancel")
	alice.open(work)
	alice.sees("Add a member")
	adds(alice, "bob")
	alice.chooses("bob")
	alice.fills("Role", "admin")
	alice.press("Add")
	alice.sees("Role: now Member, yours Admin")
	alice.looks("member-new")
	alice.press("Show theirs")
	alice.closed()
	rights(alice)

	// Bob is made an admin, opens a page, is demoted, and goes on there.
	role := func(value string) {
		alice.open(org + "/members")
		alice.role("bob", value)
		alice.Until(alice.t, "document.querySelector('[aria-label=\"Role of bob\"]:not(:disabled)')?.value === "+quoted(value)+" && !document.querySelector('.note.error')")
	}
	role("admin")
	bob.open(org + "/settings")
	bob.sees("Cost center")
	role("member")
	bob.fills("Cost center", "4711")
	bob.press("Save")
	bob.sees("Your role may have changed")
	bob.looks("demoted")
	bob.press("Reload the page")
	bob.sees("Only admins can change")
	bob.press("Activity")
	bob.sees("You see when a platform admin made somebody admin of this organization")
	bob.sees("Nothing of this kind happened")

	alice.pressIn("bob", "Remove")
	alice.press("Remove")
	alice.sees("Remove from all")
	alice.looks("member-cascade")
	alice.press("Remove from all")
	alice.closed()
	alice.misses("bob")
	bob.press("Members")
	bob.sees("no membership")
	bob.Keys(bob.t, "/")
	bob.sees("bob's personal")
	bob.misses(hostile)
	bob.Keys(bob.t, framework.Escape)
	bob.closed()
}

func bots(t *testing.T, s *scene, alice *person) {
	alice.press("Workspaces")
	alice.press("work")
	ends(alice)
	alice.press("Bots")
	alice.sees("No bots yet")
	alice.press("New bot")
	alice.fills("Name", "CI "+hostile)
	alice.press("Create")
	alice.sees("No tokens")
	alice.press("New token")
	alice.fills("Name", "pipeline")
	alice.press("Issue")
	alice.sees("only time")
	token := alice.Text(t, "#token")
	downloads(alice, "Download kubeconfig", token)
	alice.looks("token")
	alice.press("I have saved it")
	// The page has the word pipeline before the dialog is gone, too.
	alice.Until(t, "!document.querySelector('#token')")
	alice.sees("pipeline")
	var shown string
	alice.Eval(t, "document.documentElement.outerHTML + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)", &shown)
	require.NotContains(t, shown, token)
	alice.looks("bot")
	me := func() int {
		a, err := s.client.Try(framework.Call{Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Authorization": {"Bearer " + token}}})
		require.NoError(t, err)
		return a.Code
	}
	require.Equal(t, http.StatusOK, me())
	alice.pressIn("pipeline", "Revoke")
	alice.press("Revoke")
	alice.sees("No tokens")
	require.Equal(t, http.StatusUnauthorized, me())
	rotates(alice)
	warns(alice)
	trusts(s, alice)
	alice.press("Bots")
	alice.sees("CI " + hostile)
	alice.looks("bots")
}

// ends gives a Workspace an end, and takes it off.
func ends(alice *person) {
	alice.press("End")
	alice.fills("Ends at", time.Now().Add(26*time.Hour).Format("2006-01-02T15:04"))
	alice.press("Save")
	alice.sees("deleted by itself")
	alice.sees("ends in 25 hours")
	alice.looks("workspace-end")
	alice.press("End")
	alice.fills("Ends at", "")
	alice.press("Save")
	alice.closed()
	alice.misses("deleted by itself")
}

// rotates replaces a token by a new one, and ends both.
func rotates(alice *person) {
	alice.press("New token")
	alice.fills("Name", "nightly")
	alice.press("Issue")
	alice.press("I have saved it")
	alice.pressIn("nightly", "Rotate")
	alice.sees("with as long a life")
	alice.press("Rotate")
	alice.sees("only time")
	alice.press("I have saved it")
	alice.press("Revoke all")
	alice.press("Revoke")
	alice.sees("No tokens")
}

// warns shows a bot with a token that ends within two weeks, and with none.
func warns(alice *person) {
	alice.press("New token")
	alice.fills("Name", "weekly")
	alice.fills("Expires after", "604800")
	alice.press("Issue")
	alice.press("I have saved it")
	alice.sees("A token ends soon")
	alice.press("Bots")
	alice.sees("A token of a bot ends soon")
	alice.sees("days left")
	alice.looks("bots-ending")
	alice.press("CI " + hostile)
	alice.pressIn("weekly", "Revoke")
	alice.press("Revoke")
	alice.sees("No tokens")
	alice.press("Bots")
	alice.sees("Next to end")
	alice.misses("ends soon")
	alice.press("CI " + hostile)
}

// trusts has the bot trust a job, and not any more.
func trusts(s *scene, alice *person) {
	alice.sees("the pipeline needs no secret")
	alice.press("Trust a job")
	alice.fills("Identity provider", s.dex.Issuer)
	alice.fills("Claims", "repository=octo/app")
	alice.press("Add")
	alice.sees("give its number")
	alice.fills("Claims", "project_id=42")
	alice.fills("Audience", "https://jobs.example.com")
	alice.press("Add")
	alice.sees("project_id=42")
	alice.sees("https://jobs.example.com")
	alice.press("Lines for a pipeline")
	alice.sees("id_tokens")
	alice.looks("pipeline")
	alice.press("Close")
	alice.pressIn("project_id=42", "Remove")
	alice.press("Remove")
	alice.sees("the pipeline needs no secret")
}

// providers enables and disables the provider of the example, which the operator publishes.
func providers(t *testing.T, s *scene, alice *person) {
	const workspace = "root:kedge:providers:widgets"
	kcp := &framework.KCP{Kubeconfig: s.kubeconfig}
	framework.Provider(t, kcp, workspace)
	kcp.Applies(t, "root:kedge:providers", framework.ExampleCatalog(t, "entry.yaml", workspace))
	alice.press("Providers")
	alice.sees("Nothing is bound")
	list := alice.path()
	framework.Eventually(t, framework.Long, func() error {
		alice.open(list)
		alice.sees("Nothing is bound")
		return framework.Check(strings.Contains(alice.Text(t, "main"), "Widgets"), "the entry is not there")
	})
	alice.sees("Not enabled")
	alice.looks("providers")
	alice.press("Widgets")
	alice.sees("dangerous")
	alice.press("Enable")
	alice.sees("Accept or reject secrets")
	alice.rejects("secrets")
	alice.press("Check")
	alice.sees("This would work")
	alice.press("Enable")
	alice.Until(t, "document.querySelector('.head .badge.ok')")
	alice.looks("provider")
	alice.press("Disable")
	alice.sees("widgets.widgets.example.org")
	alice.looks("provider-disable")
	alice.fills("Type the name to confirm", "Widgets")
	alice.press("Disable")
	alice.Until(t, "document.querySelector('.head .badge')?.textContent === 'Not enabled'")
}

func settings(alice *person) {
	org := alice.orgPath()
	other := &person{Chromium: alice.Tab("second"), t: alice.t, hub: alice.hub}
	for _, p := range []*person{alice, other} {
		p.open(org + "/settings")
		p.sees("Cost center")
	}
	alice.sees("Apply billing to existing workspaces")
	alice.looks("settings")
	other.fills("Who may create workspaces", "admin")
	other.fills("Billing labels", "team=search")
	other.press("Save")
	other.sees("Saved.")
	alice.fills("Billing labels", "no value")
	alice.press("Save")
	alice.sees("not key=value")
	alice.fills("Billing labels", "")
	alice.fills("Name", "ACME")
	alice.press("Save")
	alice.sees("Somebody else has changed this meanwhile")
	alice.sees("Who may create workspaces: now Admins only, yours All members")
	alice.looks("settings-changed")
	alice.press("Save")
	alice.sees("Saved.")
	alice.press("Let a group in")
	alice.fills("Group", "system:masters")
	alice.press("Let in")
	alice.sees("not begin with system")
	alice.fills("Group", hostile)
	alice.looks("settings-group")
	alice.press("Let in")
	alice.closed()
	alice.sees(hostile)
	alice.pressIn(hostile, "Remove")
	alice.press("Remove")
	alice.closed()
	alice.misses(hostile)
}

// endedSession ends the session of a person who is filling in a form.
func endedSession(alice *person) {
	alice.press("Workspaces")
	alice.press("New workspace")
	alice.fills("Name", "kept")
	other := &person{Chromium: alice.Tab("second"), t: alice.t, hub: alice.hub}
	other.open("/ui/me")
	other.press("Sign out everywhere")
	other.press("Sign out everywhere")
	other.At(other.t, other.hub+"/ui/sign-in")
	alice.press("Create")
	alice.sees("Your session has ended")
	alice.looks("session-ended")
	// A login in the second in which all were ended counts as one from before, and is refused.
	framework.Eventually(alice.t, framework.Long, func() error {
		other.enterToken("alice", "/ui/signed-in")
		// The form has a query, and neither the page behind it nor a refusal has one.
		other.Until(alice.t, "location.search === ''")
		var path string
		other.Eval(alice.t, "location.pathname", &path)
		if err := framework.Check(path == "/ui/signed-in", "the login was refused"); err != nil {
			return err
		}
		// The page tells the other one when it is there, and not before.
		other.Until(alice.t, "document.querySelector('h1') && !document.querySelector('.loading')")
		var waits bool
		alice.Eval(alice.t, "Boolean(document.querySelector('dialog.ended'))", &waits)
		return framework.Check(!waits, "the page still waits for the sign-in")
	})
	alice.closed()
	alice.sees("kept")
}

func deletion(alice *person) {
	alice.pressIn("kept", "Delete")
	alice.looks("delete")
	alice.fills("Type the name to confirm", "other")
	alice.press("Delete workspace")
	alice.sees("not the name")
	alice.fills("Type the name to confirm", "kept")
	alice.press("Delete workspace")
	alice.closed()
	alice.sees("days left")
	alice.press("Settings")
	alice.press("Delete organization")
	alice.fills("Type the name to confirm", "ACME")
	alice.press("Delete organization")
	alice.At(alice.t, alice.hub+"/ui/")
	alice.misses("ACME")
	alice.press("Deleted items")
	alice.sees("Undelete the organization first")
	alice.looks("deleted")
	alice.pressIn("Organization", "Undelete")
	alice.misses("Undelete the organization first")
	alice.pressIn("kept", "Undelete")
	alice.sees("Nothing is deleted")
}
