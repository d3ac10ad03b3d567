package portal

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// invitations invites somebody whom the hub, which admits nobody without approval, has never seen. They go
// from the link through a login at the identity provider into the organization.
func invitations(t *testing.T, s *scene, alice *person) {
	alice.open("/ui/")
	alice.press("New organization")
	alice.fills("Name", "Guild")
	alice.press("Create")
	alice.Until(t, "document.querySelector('h1').innerText === 'Guild' && [...document.querySelectorAll('button')].some((b) => b.innerText === 'New workspace' && !b.disabled)")
	alice.press("Members")
	alice.press("Invite")
	alice.fills("Note", "Welcome "+hostile)
	alice.press("Make a link")
	alice.sees("Nobody can read it again")
	alice.looks("invitation-link")
	link := alice.Text(t, "#invitation-link")
	var draft string
	alice.Eval(t, "document.querySelector('dialog a.button').href", &draft)
	require.True(t, strings.HasPrefix(draft, "mailto:?subject="), draft)
	require.Contains(t, draft, url.QueryEscape(link))
	alice.press("Done")
	alice.sees("anybody with the link")
	alice.looks("members-invitations")

	stranger := s.person(t, "stranger")
	stranger.Open(t, strings.Split(link, "#")[0]+"#wrong")
	stranger.sees("There is no such invitation")
	stranger.Open(t, s.client.URL+"/ui/sign-in")
	stranger.Open(t, link)
	stranger.sees("You are invited")
	stranger.sees("Welcome " + hostile)
	stranger.looks("invitation")
	stranger.press("Sign in and accept")
	s.dex.LogInWith(t, stranger.Chromium, "bob")
	stranger.At(t, s.client.URL+"/ui/orgs/")
	stranger.sees("Guild")
	stranger.Open(t, link)
	stranger.sees("was accepted already")

	// Somebody who is signed in sees as whom, and accepts without a login.
	alice.open("/ui/")
	alice.press("Guild")
	alice.press("Members")
	alice.misses("anybody with the link")
	alice.press("Invite")
	alice.press("Make a link")
	link = alice.Text(t, "#invitation-link")
	alice.press("Done")
	alice.Open(t, link)
	alice.sees("You are signed in as")
	alice.looks("invitation-signed-in")
	alice.press("Accept")
	alice.sees("are a member there already, as admin")
	alice.press("Decline")
	alice.sees("Nobody can accept it then")
	alice.press("Decline")
	alice.At(t, s.client.URL+"/ui/")
	alice.sees("Organizations")
}
