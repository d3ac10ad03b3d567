package portal

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// colleagues has alice, an admin of an Organization, decide about a Workspace in it that somebody else made: she is in the
// Organization alone.
func colleagues(t *testing.T, s *scene, alice *person) {
	from := alice.path()
	org := s.client.Made(t, framework.Call{
		As: admin, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "Together"},
	}).Text("uuid")
	s.client.Do(t, framework.InOrg(admin, http.MethodPost, org, "/members", framework.Adding("alice", "admin")), http.StatusCreated)
	named := map[string]string{"displayName": "Their shop"}
	ws := s.client.Made(t, framework.InOrg(admin, http.MethodPost, org, "/workspaces", named)).Text("uuid")
	joins := func(name string) {
		adding := framework.Adding(name, "member")
		s.client.Do(t, framework.InWorkspace(admin, http.MethodPost, org, ws, "/members", adding), http.StatusCreated)
	}
	joins("bob")
	asked := map[string]string{"kind": "sudo", "for": "1h", "reason": "it is slow"}
	s.client.Do(t, framework.InWorkspace("bob", http.MethodPost, org, ws, "/requests", asked), http.StatusCreated)
	page := "/ui/orgs/" + org
	// The pages name it, though no Membership of hers does.
	alice.open(page + "/requests")
	alice.sees("it is slow")
	alice.sees("Their shop")
	alice.looks("requests-of-others")
	alice.pressIn("it is slow", "Deny")
	alice.press("Deny")
	alice.closed()
	alice.sees("Denied")
	alice.open(page + "/access")
	alice.sees("Their shop")
	alice.misses(ws)
	alice.open(page + "/activity")
	alice.fillsBy("Workspace", ws)
	alice.Until(t, "document.querySelector('select[name=workspace]').selectedOptions[0]?.textContent === 'Their shop'")

	remove := func() {
		alice.open(page)
		alice.pressIn("Their shop", "Delete")
		alice.fills("Type the name to confirm", "Their shop")
		alice.press("Delete workspace")
		alice.closed()
		alice.sees("days left")
	}
	remove()
	alice.looks("organization-deleted-workspace")
	alice.pressIn("Their shop", "Undelete")
	alice.misses("days left")
	alice.sees("Their shop")
	// With a role of her own that is too low, she brings it back all the same.
	joins("alice")
	remove()
	alice.open("/ui/deleted")
	alice.sees("in Together")
	alice.misses("An admin can undelete it")
	alice.looks("deleted-by-others")
	alice.pressIn("Their shop", "Undelete")
	alice.sees("Nothing is deleted")
	alice.open(page)
	alice.sees("Their shop")
	alice.open(from)
}
