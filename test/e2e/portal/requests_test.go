package portal

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// requests has bob ask for rights in a workspace of which alice is an admin, though she is not in its organization.
func requests(t *testing.T, s *scene, alice, bob *person) {
	from := alice.path()
	org := s.client.Made(t, framework.Call{
		As: admin, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "Elsewhere"},
	}).Text("uuid")
	ws := s.client.Made(t, framework.InOrg(admin, http.MethodPost, org, "/workspaces", map[string]string{"displayName": "Lab"})).Text("uuid")
	for user, role := range map[string]string{"alice": "admin", "bob": "member"} {
		s.client.Do(t, framework.InWorkspace(admin, http.MethodPost, org, ws, "/members", framework.Adding(user, role)), http.StatusCreated)
	}
	page := "/ui/orgs/" + org + "/workspaces/" + ws + "/requests"
	bob.open(page)
	bob.sees("Nobody asks for anything")
	bob.press("Ask for rights")
	bob.fills("Why", "the disk is full")
	bob.press("Ask")
	bob.sees("the disk is full")
	bob.looks("request-made")

	// The bar at the top says so on every page.
	alice.open("/ui/")
	alice.press("1 request")
	alice.At(t, alice.hub+page)
	alice.sees("the disk is full")
	alice.looks("requests")
	alice.pressIn("the disk is full", "Approve")
	alice.fills("Note", "go on")
	alice.press("Approve")
	alice.sees("Approved")
	bob.open(page)
	bob.sees("go on")
	alice.pressIn("the disk is full", "Revoke")
	alice.press("Revoke")
	alice.sees("Ended")
	alice.open("/ui/")
	alice.misses("1 request")
	alice.open(from)
}
