package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A person deletes their own account: b, who is a member of the Organization and of the
// Workspace, or a, who created them.
func otherOf(s *scene, method, path string) framework.Call {
	return framework.Call{As: s.b, Method: method, Path: "/api/users/me" + path}
}

// marked reports whether an object is soft-deleted.
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

// populated is an Organization with a Workspace, with b as a member of both.
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
	return append(operations, operation{
		name: "Workspace end", setup: populated, begin: endSoon,
		intent: func(s *scene, e audit.Event) bool { return e.Action == "expire workspace" && e.Object == s.ws },
		done:   workspaceMarked, none: marked(workspaceMarked).not,
	})
}

// endSoon gives the Workspace an end that is nearer than people may give it.
func endSoon(ctx context.Context, l *lane, s *scene) error {
	truth, err := framework.ReadTruth(ctx, l.clients, l.root, s.a)
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ExpiresAtAnnotation, end)
	_, err = l.clients.Workspaces(truth.Orgs[s.org].Workspace.Spec.Cluster).Patch(ctx, s.ws, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// freezing is the last write of a deactivation.
const freezing = "PATCH logicalclusters"

// withdrawn kills the hub after it deactivated a logical cluster and before it updated the
// status, and undeletes the object before a hub is back. That is what another replica can do
// before its controllers take over.
func (l *lane) withdrawn(t *testing.T) {
	both := deletions()
	for _, o := range []operation{both[0], both[2]} {
		t.Run(o.name, func(t *testing.T) {
			var s *scene
			// The first time finds the write that deactivates; other writes are in random order.
			for n, tries, killed := 0, 0, false; !killed; tries++ {
				require.Less(t, tries, 20, "the hub froze nothing")
				s = l.scenes(t, o, 1)[0]
				l.hub.Arm(t, n, "after")
				_, _ = l.hub.Try(o.call(s))
				l.hub.Settle(t, func(ctx context.Context) error { return l.whole(ctx, o, s) })
				writes := l.hub.Writes()
				l.hub.Disarm(t)
				if killed = n > 0 && len(writes) == n && writes[n-1] == freezing; !killed {
					n = 1 + slices.Index(writes, freezing)
					l.hub.Restart(t)
				}
			}
			truth, err := framework.ReadTruth(t.Context(), l.clients, l.root, s.a, s.b)
			require.NoError(t, err)
			require.True(t, o.done(truth, s), "the control: it was deleted")
			if o.name == both[0].name {
				at := truth.Orgs[s.org].Workspace.Spec.Cluster
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.DeletionRequestedAtAnnotation)
				_, err = l.clients.Workspaces(at).Patch(t.Context(), s.ws, types.MergePatchType, patch, metav1.PatchOptions{})
			} else {
				patch := []byte(`{"status":{"deletionRequestedAt":null}}`)
				_, err = l.clients.Organizations(l.root+":orgs").Patch(t.Context(), s.org, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			}
			require.NoError(t, err)
			l.hub.Restart(t)
			require.NoError(t, framework.Wait(healed, func() error {
				truth, err := l.look(t.Context(), s)
				if err == nil && !o.none(truth, s) {
					err = fmt.Errorf("it is still deleted")
				}
				return err
			}))
		})
	}
}

// cascades are deletions with a short grace period.
func cascades() []operation {
	workspaceThere := func(truth *framework.Truth, s *scene) bool { return truth.Orgs[s.org].Workspaces[s.ws] != nil }
	orgThere := func(truth *framework.Truth, s *scene) bool { return truth.Orgs[s.org] != nil }
	return []operation{
		{
			name: "Workspace cascade", setup: populated, slow: true,
			call: func(s *scene) framework.Call { return inWorkspace(s, http.MethodDelete, "", nil) },
			done: marked(workspaceThere).not,
			none: func(truth *framework.Truth, s *scene) bool {
				return workspaceThere(truth, s) && !workspaceMarked(truth, s)
			},
			already: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			name: "Org cascade", setup: populated, slow: true,
			call:    func(s *scene) framework.Call { return inOrg(s, http.MethodDelete, "", nil) },
			done:    marked(orgThere).not,
			none:    func(truth *framework.Truth, s *scene) bool { return orgThere(truth, s) && !orgMarked(truth, s) },
			already: []int{http.StatusForbidden, http.StatusNotFound},
		},
	}
}

// peopleOperations are the operations on a hub with personal Organizations.
func peopleOperations() []operation {
	there := func(truth *framework.Truth, s *scene) bool { return truth.Users[s.a] != nil }
	return []operation{
		{
			name: "sign-up", setup: steps(), call: signUp, slow: true,
			done: func(truth *framework.Truth, s *scene) bool { return there(truth, s) && len(truth.Orgs) == 1 },
			none: func(truth *framework.Truth, s *scene) bool { return !there(truth, s) && len(truth.Orgs) == 0 },
		},
		{
			name: "person cascade", slow: true,
			// One of the leaving person's Organizations has another member, one has none.
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
			// A deleted person who signs up again is a new User.
			final: true,
		},
	}
}
