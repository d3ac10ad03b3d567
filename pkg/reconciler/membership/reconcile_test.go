package membership_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membership"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// world has a Membership of bob with the objects that it refers to.
type world struct {
	*kcptest.KCP
	held     *v1alpha1.Membership
	problems map[string]tenancy.RoleProblem
	bindings map[string]bool
}

func newWorld(t *testing.T, held *v1alpha1.Membership) *world {
	t.Helper()
	w := &world{KCP: kcptest.New(t), held: held, problems: map[string]tenancy.RoleProblem{}, bindings: map[string]bool{}}
	w.PutUser("bob")
	w.PutOrg(tenancy.NewOrganization("o", "O", "alice"), "org1")
	w.held.Generation = 3
	w.Put("org1", w.held)
	return w
}

func ofBob(roles ...string) *v1alpha1.Membership {
	var refs []v1alpha1.RoleRef
	for _, name := range roles {
		refs = append(refs, v1alpha1.RoleRef{Name: name})
	}
	return tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, refs, false)
}

// HasExtraBinding is that of the views.
func (w *world) HasExtraBinding(cluster, user string, r v1alpha1.RoleRef) bool {
	return cluster == "c" && user == "bob" && w.bindings[tenancy.RoleName(r)]
}

func (w *world) reconcile(t *testing.T) {
	t.Helper()
	w.ForgetRequests()
	_, err := membership.New(w, w.Stored.Memberships, func(cluster string, r v1alpha1.RoleRef) tenancy.RoleProblem {
		require.Equal(t, "c", cluster)
		if problem, ok := w.problems[tenancy.RoleName(r)]; ok {
			return problem
		}
		return tenancy.RoleMissing
	}, w.Clock)(t.Context(), controller.Key{Cluster: "org1", Name: w.held.Name})
	require.NoError(t, err)
	for _, write := range w.Writes() {
		require.Equal(t, "status", write.Subresource, "it writes nothing else")
	}
	require.True(t, w.Read("org1", w.held))
	require.Equal(t, w.held.Generation, w.held.Status.ObservedGeneration)
}

func (w *world) condition(t *testing.T, name string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(w.held.Status.Conditions, name)
	require.NotNil(t, c)
	return *c
}

func TestReconcile_isReadyAtOnceWithoutFurtherRoles(t *testing.T) {
	t.Parallel()
	for _, held := range []*v1alpha1.Membership{ofBob(), tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)} {
		w := newWorld(t, held)
		w.reconcile(t)
		require.Equal(t, v1alpha1.PhaseReady, w.held.Status.Phase, "it does not wait for the workspace")
		w.reconcile(t)
		require.Empty(t, w.Writes(), "a status that is right is left alone")
	}
}

func TestReconcile_reportsAMissingUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofBob())
	bob, _ := w.ByName("bob")
	w.Remove(kcptest.Users, bob)
	w.reconcile(t)
	require.Equal(t, v1alpha1.PhaseProgressing, w.held.Status.Phase)
	require.Contains(t, w.condition(t, v1alpha1.ConditionUserFound).Message, "no person of the name bob")
	w.PutUser("bob")
	w.reconcile(t)
	require.Equal(t, v1alpha1.PhaseReady, w.held.Status.Phase)
}

func TestReconcile_showsFurtherRolesAsTheyAreBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofBob("view", "audit", "later", "kedge:workspace:admin", "cluster-admin"))
	w.reconcile(t)
	require.Contains(t, w.condition(t, v1alpha1.ConditionRolesApplied).Message, "still being made")
	w.PutWorkspace("org1", "w", "c")

	// Reserved roles never count as bound, even if bindings of these names exist.
	kcptest.Change(t, w.KCP, "org1", w.held, func(m *v1alpha1.Membership) {
		m.Spec.Roles = append(m.Spec.Roles, v1alpha1.RoleRef{Name: "editor", Namespace: "dev"}, v1alpha1.RoleRef{Name: "above", Namespace: "dev"})
	})
	w.problems = map[string]tenancy.RoleProblem{
		"view": "", "audit": "", "dev/editor": "", "dev/above": tenancy.RoleNotCovered,
		"kedge:workspace:admin": tenancy.RoleReserved, "cluster-admin": tenancy.RoleReserved,
	}
	// A binding that the hub is about to remove does not count as applied.
	w.bindings = map[string]bool{"view": true, "cluster-admin": true, "dev/editor": true, "dev/above": true}
	w.reconcile(t)
	require.Equal(t, []string{"dev/editor", "view"}, w.held.Status.AppliedRoles)
	require.Equal(t, v1alpha1.PhaseProgressing, w.held.Status.Phase)
	says := w.condition(t, v1alpha1.ConditionRolesApplied).Message
	require.Contains(t, says, "not in the workspace, and bound once there: later")
	require.Contains(t, says, "reserved, and never bound: kedge:workspace:admin, cluster-admin")
	require.Contains(t, says, "with rights that kedge:workspace:admin does not have, and not bound: dev/above")
	require.Contains(t, says, "being bound: audit")

	kcptest.Change(t, w.KCP, "org1", w.held, func(m *v1alpha1.Membership) {
		m.Spec.Roles = m.Spec.Roles[:2]
	})
	w.bindings["audit"] = true
	w.reconcile(t)
	require.Equal(t, []string{"audit", "view"}, w.held.Status.AppliedRoles, "in a stable order")
	require.Equal(t, v1alpha1.PhaseReady, w.held.Status.Phase)
	kcptest.Change(t, w.KCP, "org1", w.held, func(m *v1alpha1.Membership) {
		m.Spec.Roles = nil
	})
	w.reconcile(t)
	require.Empty(t, w.held.Status.AppliedRoles)
}
