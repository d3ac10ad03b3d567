package lifecycle

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	kcpclients "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

// reconciled is an object of a reconciled kind.
type reconciled struct {
	// patch changes the object; operation returns the value of its operation annotation.
	patch     func(patch string, subresources ...string) error
	operation func() (string, error)
	// damage alters a part of the object that only the controller of its kind repairs.
	damage func() error
	// whole returns an error while the object is damaged.
	whole func() error
}

// operated returns a reconciled object that is accessed with the client.
func operated[T kcpclients.Object](t *testing.T, client *kcpclients.Client[T], name string, damage, whole func(r reconciled) error) reconciled {
	t.Helper()
	r := reconciled{
		patch: func(patch string, subresources ...string) error {
			_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
			return err
		},
		operation: func() (string, error) {
			o, err := client.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return o.GetAnnotations()[v1alpha1.OperationAnnotation], nil
		},
	}
	r.damage, r.whole = func() error { return damage(r) }, func() error { return whole(r) }
	return r
}

// operate sets the operation annotation, or removes it if the value is empty.
func (r reconciled) operate(t testing.TB, value string) {
	t.Helper()
	raw := "null"
	if value != "" {
		raw = fmt.Sprintf("%q", value)
	}
	require.NoError(t, r.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.OperationAnnotation, raw)))
}

// No controller changes an object while its operation annotation is "ignore". The value
// "reconcile" triggers one reconciliation and is then removed.
func TestOperations_steerEveryReconciledObject(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	framework.SignUp(t, hub, "alice", "bob")
	// Each kind has one ignored object and one that is not. When the second is repaired,
	// the controller has had time to repair the first.
	var pair [2]map[string]reconciled
	for i, who := range []string{"alice", "bob"} {
		org := hub.CreateOrg(t, who, who+"'s")
		made := hub.CreateWorkspace(t, who, org, "dev")
		ws, cluster := made.Text("uuid"), made.Text("clusterID")
		forgotten := func(r reconciled) error {
			return r.patch(`{"status":{"phase":"Progressing","conditions":null}}`, "status")
		}
		ready := func(status func() (v1alpha1.CommonStatus, error)) func(reconciled) error {
			return func(reconciled) error {
				s, err := status()
				if err == nil && (s.Phase != v1alpha1.PhaseReady || len(s.Conditions) == 0) {
					err = fmt.Errorf("%v", s)
				}
				return err
			}
		}
		users, orgs, memberships := p.Users(p.UsersPath()), p.Organizations(p.OrgsPath()), p.Memberships(p.OrgPath(org))
		roles, indexes := p.ClusterRoles(cluster), p.Indexes(p.UsersPath())
		pair[i] = map[string]reconciled{
			"User": operated(t, users, who, forgotten, ready(func() (v1alpha1.CommonStatus, error) {
				u, err := users.Get(t.Context(), who, metav1.GetOptions{})
				return u.Status.CommonStatus, err
			})),
			"Organization": operated(t, orgs, org, forgotten, ready(func() (v1alpha1.CommonStatus, error) {
				o, err := orgs.Get(t.Context(), org, metav1.GetOptions{})
				return o.Status.CommonStatus, err
			})),
			"Membership": operated(t, memberships, ws+"."+who, forgotten, ready(func() (v1alpha1.CommonStatus, error) {
				m, err := memberships.Get(t.Context(), ws+"."+who, metav1.GetOptions{})
				return m.Status.CommonStatus, err
			})),
			"Workspace": operated(t, p.Workspaces(p.OrgPath(org)), ws, func(reconciled) error {
				_, err := roles.Patch(t.Context(), "kedge:workspace:viewer", types.MergePatchType, []byte(`{"rules":[]}`), metav1.PatchOptions{})
				return err
			}, func(reconciled) error {
				r, err := roles.Get(t.Context(), "kedge:workspace:viewer", metav1.GetOptions{})
				if err == nil && len(r.Rules) == 0 {
					err = errors.New("the viewer's role is empty")
				}
				return err
			}),
			"UserMembershipIndex": operated(t, indexes, who, func(r reconciled) error { return r.patch(`{"spec":{"entries":[]}}`) }, func(reconciled) error {
				rows, err := p.RowsOf(t, who)
				if err == nil {
					err = framework.Equal(2, len(rows))
				}
				return err
			}),
		}
	}
	p.Settles(t, false)
	for kind, ignored := range pair[0] {
		beside := pair[1][kind]
		heal := func(r reconciled, annotation string) {
			t.Helper()
			require.NoError(t, framework.Wait(framework.Long, func() error {
				left, err := r.operation()
				if err == nil && left != annotation {
					err = fmt.Errorf("the annotation is %q", left)
				}
				return errors.Join(err, r.whole())
			}), kind)
		}
		for _, ending := range []string{"", v1alpha1.OperationReconcile} {
			ignored.operate(t, v1alpha1.OperationIgnore)
			require.NoError(t, ignored.damage(), kind)
			require.NoError(t, beside.damage(), kind)
			heal(beside, "")
			require.Error(t, ignored.whole(), "%s: it was not left alone", kind)
			left, err := ignored.operation()
			require.NoError(t, err)
			require.Equal(t, v1alpha1.OperationIgnore, left, kind)
			ignored.operate(t, ending)
			heal(ignored, "")
		}
		// An unknown value has no effect and is not removed.
		ignored.operate(t, "nonsense")
		require.NoError(t, ignored.damage(), kind)
		heal(ignored, "nonsense")
		ignored.operate(t, "")
		ignored.operate(t, v1alpha1.OperationReconcile)
		heal(ignored, "")
	}
	p.Settles(t, false)
}

// The annotation "ignore" does not delay the end of rights. Removed members lose access,
// and deleted objects are hidden. The cleanup in kcp waits until the annotation is
// removed.
func TestIgnore_keepsNobodyInWhoIsOut(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	none := func(reconciled) error { return nil }
	workspace := operated(t, p.Workspaces(p.OrgPath(org)), ws, none, none)
	for name, r := range map[string]reconciled{
		"the Workspace": workspace, "the Membership": operated(t, p.Memberships(p.OrgPath(org)), ws+".bob", none, none),
	} {
		require.NotEmpty(t, p.RolesIn(t, cluster, "bob"), name)
		r.operate(t, v1alpha1.OperationIgnore)
		hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/members/bob", nil), http.StatusNoContent)
		require.Empty(t, p.RolesIn(t, cluster, "bob"), name)
		hub.Do(t, framework.InWorkspace("bob", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
		if name == "the Workspace" {
			r.operate(t, "")
		}
		hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	}
	workspace.operate(t, v1alpha1.OperationIgnore)
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "", nil), http.StatusOK)
	require.NoError(t, shownAs(hub, "alice", org, ws, cluster, true, false))
	// An ignored object is never purged, even if its grace period is over.
	p.age(t, "", org, ws, over())
	beside := hub.CreateWorkspace(t, "alice", org, "beside").Text("uuid")
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, beside, "", nil), http.StatusOK)
	p.age(t, "", org, beside, over())
	gone(t, p.Workspaces(p.OrgPath(org)), beside)
	require.Contains(t, p.WorkspacesOf(t, org), ws)
	workspace.operate(t, "")
	gone(t, p.Workspaces(p.OrgPath(org)), ws)
	p.SettlesIn(t, org, "alice", "bob")
}
