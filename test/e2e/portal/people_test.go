package portal

import (
	"strings"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

func account(bob *person) {
	bob.open("/ui/me")
	bob.fills("Name", "Bob "+hostile)
	bob.press("Save")
	bob.Until(bob.t, "document.querySelector('#top nav').innerText.includes("+quoted("Bob "+hostile)+")")
	bob.sees("this one")
	bob.looks("account")
	bob.press("Delete account")
	bob.fills("Type the name to confirm", "bob")
	bob.press("Delete account")
	bob.sees("Your account is deleted")
	// A session of the second in which the account was deleted counts as one from before.
	framework.Eventually(bob.t, framework.Long, func() error {
		bob.signIn("bob", "/ui/")
		bob.Until(bob.t, "document.querySelector('main h1')")
		return framework.Check(strings.Contains(bob.Text(bob.t, "main"), "Bring my account back"), "at %s", bob.path())
	})
	bob.looks("account-deleted")
	bob.press("Bring my account back")
	bob.sees("Organizations")
}

// anotherPerson signs somebody else in while a page is open: it must not act as them unnoticed.
func anotherPerson(alice *person) {
	alice.open("/ui/me")
	alice.sees("this one")
	other := &person{Chromium: alice.Tab("second"), t: alice.t, hub: alice.hub}
	for _, name := range []string{"bob", "alice"} {
		other.signIn(name, "/ui/")
		alice.Until(alice.t, "location.pathname === '/ui/' && document.querySelector('#top nav').innerText.toLowerCase().includes("+quoted(name)+")")
		alice.sees("Organizations")
	}
}

// keyboard opens the switcher, chooses and closes a dialog without a mouse.
func keyboard(alice *person) {
	alice.open("/ui/")
	alice.sees("ACME")
	alice.Keys(alice.t, "\t")
	alice.Until(alice.t, "document.activeElement.matches('.skip')")
	alice.Keys(alice.t, "\r")
	alice.Until(alice.t, "document.activeElement.id === 'main'")
	alice.Keys(alice.t, "/")
	alice.Until(alice.t, "document.activeElement.matches('.switcher input, .switcher a')")
	for range 3 {
		alice.Keys(alice.t, framework.ArrowDown)
	}
	var chosen string
	alice.Eval(alice.t, "document.activeElement.pathname", &chosen)
	alice.Keys(alice.t, "\r")
	alice.At(alice.t, alice.hub+chosen)
	alice.closed()
	alice.Until(alice.t, "document.activeElement.matches('h1')")
	alice.Keys(alice.t, "/")
	alice.Until(alice.t, "document.querySelector('dialog[open]')")
	alice.Back(alice.t)
	alice.closed()
	alice.sees("ACME")
	alice.tabTo("ACME")
	alice.Keys(alice.t, "\r")
	alice.sees("New workspace")
	alice.tabTo("New workspace")
	alice.Keys(alice.t, "\r")
	alice.Until(alice.t, "document.activeElement.matches('dialog input')")
	alice.Keys(alice.t, framework.Escape)
	alice.closed()
	alice.Until(alice.t, "document.activeElement.textContent === 'New workspace'")
	alice.Keys(alice.t, "\r")
	alice.Until(alice.t, "document.activeElement.matches('dialog input')")
	alice.Keys(alice.t, "keys\r")
	alice.closed()
	alice.Until(alice.t, "document.activeElement.matches('h1')")
	alice.Until(alice.t, rows("keys")+" === 1 && !document.querySelector('td .badge.busy')")
	alice.tabTo("keys")
	alice.Keys(alice.t, "\r")
	alice.sees("Get in with kubectl")
	alice.tabTo("Members")
	alice.Keys(alice.t, "\r")
	alice.sees("Add a member")
}

// provider signs a person in at the identity provider, who comes back to the page that they
// opened.
func provider(t *testing.T, s *scene, operator *person) {
	carol := s.person(t, "carol")
	carol.open("/ui/me")
	carol.sees("Sign in")
	carol.Click(t, "#sign-in")
	s.dex.LogInWith(t, carol.Chromium, "carol")
	carol.sees("waits for the approval")
	operator.press("Admin")
	operator.pressIn("carol", "Approve")
	operator.misses("Waiting for approval")
	carol.open("/ui/me")
	carol.Click(t, "#sign-in")
	s.dex.LogInWith(t, carol.Chromium, "carol")
	carol.At(t, s.client.URL+"/ui/me")
	carol.sees("carol@example.com")
	// kcp takes the ID token that the hub keeps with the session.
	carol.open("/ui/")
	carol.press("default")
	carol.press("Providers")
	carol.press("Widgets")
	carol.sees("dangerous")
	carol.rejects("secrets")
	carol.press("Enable")
	carol.Until(t, "document.querySelector('.head .badge.ok')")
	carol.press("Sign out")
	carol.At(t, s.client.URL+"/ui/sign-in")
	carol.open("/ui/me")
	carol.At(t, s.client.URL+"/ui/sign-in")
}
