package e2e

import (
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A person is deleted by themselves: b, who is a member of both the Org and the
// Workspace, or a, who made them.
func otherOf(s *scene, method, path string) framework.Call {
	return framework.Call{As: s.b, Method: method, Path: "/api/users/me" + path}
}

// marked tells whether something is soft-deleted.
type marked func(truth *framework.Truth, s *scene) bool

func (m marked) not(truth *framework.Truth, s *scene) bool { return !m(truth, s) }

func orgMarked(truth *framework.Truth, s *scene) bool {
	return truth.Orgs[s.org].Organization.Status.DeletionRequestedAt != nil
}

func workspaceMarked(truth *framework.Truth, s *scene) bool {
	_, ok := truth.Orgs[s.org].Workspaces[s.ws].Annotations[v1alpha1.DeletionRequestedAtAnnotation]
	return ok
}

func personMarked(truth *framework.Truth, s *scene) bool {
	return truth.Users[s.b].Status.DeletionRequestedAt != nil
}

// populated is an Org with a Workspace, and b in both.
var populated = steps(asked(signUp), asked(otherSignsUp), org, workspace,
	asked(addTo(inOrg, "member", false)), asked(addTo(inWorkspace, "member", true)))

func deletions() []operation {
	var operations []operation
	for _, c := range []struct {
		what    string
		call    func(s *scene, method, path string) framework.Call
		marked  marked
		already int
	}{
		{"Workspace", func(s *scene, method, path string) framework.Call { return inWorkspace(s, method, path, nil) }, workspaceMarked, http.StatusNotFound},
		{"Org", func(s *scene, method, path string) framework.Call { return inOrg(s, method, path, nil) }, orgMarked, http.StatusNotFound},
		{"person", otherOf, personMarked, http.StatusForbidden},
	} {
		remove := func(s *scene) framework.Call { return c.call(s, http.MethodDelete, "") }
		operations = append(operations, operation{
			name: c.what + " soft-delete", setup: populated, call: remove,
			done: c.marked, none: c.marked.not, already: []int{c.already},
		}, operation{
			name: c.what + " undelete", setup: steps(populated, asked(remove)),
			call: func(s *scene) framework.Call { return c.call(s, http.MethodPost, "/undelete") },
			done: c.marked.not, none: c.marked,
		})
	}
	return operations
}

// cascades are deletions whose grace is short.
func cascades() []operation {
	workspaceThere := func(truth *framework.Truth, s *scene) bool { return truth.Orgs[s.org].Workspaces[s.ws] != nil }
	orgThere := func(truth *framework.Truth, s *scene) bool { return truth.Orgs[s.org] != nil }
	return []operation{
		{
			name: "Workspace cascade", setup: populated,
			call: func(s *scene) framework.Call { return inWorkspace(s, http.MethodDelete, "", nil) },
			done: marked(workspaceThere).not,
			none: func(truth *framework.Truth, s *scene) bool {
				return workspaceThere(truth, s) && !workspaceMarked(truth, s)
			},
			already: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			name: "Org cascade", setup: populated,
			call:    func(s *scene) framework.Call { return inOrg(s, http.MethodDelete, "", nil) },
			done:    marked(orgThere).not,
			none:    func(truth *framework.Truth, s *scene) bool { return orgThere(truth, s) && !orgMarked(truth, s) },
			already: []int{http.StatusForbidden, http.StatusNotFound},
		},
	}
}

// peopleOperations are those of a hub that makes everybody an Org of their own.
func peopleOperations() []operation {
	there := func(truth *framework.Truth, s *scene) bool { return truth.Users[s.a] != nil }
	return []operation{
		{
			name: "sign-up", setup: steps(), call: signUp,
			done: func(truth *framework.Truth, s *scene) bool { return there(truth, s) && len(truth.Orgs) == 1 },
			none: func(truth *framework.Truth, s *scene) bool { return !there(truth, s) && len(truth.Orgs) == 0 },
		},
		{
			name: "person cascade",
			// Of the Orgs of whom goes, one has an heir and one has nobody else.
			setup: steps(populated, func(l *lane, s *scene) error {
				c := createOrg(s)
				c.Header = nil
				a, err := l.ask(c)
				s.alone = a.Text("uuid")
				return err
			}),
			call: func(s *scene) framework.Call {
				return framework.Call{As: s.a, Method: http.MethodDelete, Path: "/api/users/me"}
			},
			done: func(truth *framework.Truth, s *scene) bool {
				left := truth.Orgs[s.org]
				return !there(truth, s) && truth.Orgs[s.alone] == nil && len(truth.Orgs) == 2 &&
					left != nil && left.Memberships[s.b] != nil && left.Memberships[s.b].Spec.Role == v1alpha1.RoleAdmin
			},
			none: func(truth *framework.Truth, s *scene) bool {
				return there(truth, s) && truth.Users[s.a].Status.DeletionRequestedAt == nil
			},
			// Whoever is gone and comes again is new.
			final: true,
		},
	}
}
