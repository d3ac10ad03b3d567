package membership_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membership"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// world is a Membership of bob with the objects that it refers to.
type world struct {
	held     *v1alpha1.Membership
	person   bool
	cluster  string
	problems map[string]tenancy.RoleProblem
	bindings map[string]bool
	patches  int
}

func newWorld(roles ...string) *world {
	w := &world{person: true, cluster: "c", problems: map[string]tenancy.RoleProblem{}, bindings: map[string]bool{}}
	var refs []v1alpha1.RoleRef
	for _, name := range roles {
		refs = append(refs, v1alpha1.RoleRef{Name: name})
	}
	w.held = tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, refs, false)
	w.held.UID, w.held.ResourceVersion, w.held.Generation = "uid", "1", 3
	w.held.Annotations = map[string]string{"kcp.io/cluster": "org1"}
	return w
}

func (w *world) reconcile(t *testing.T) {
	t.Helper()
	_, err := membership.New(membership.Config{
		Clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)),
		Get:   func(controller.Key) (*v1alpha1.Membership, bool) { return w.held, w.held != nil },
		User: func(name string) (*v1alpha1.User, bool) {
			require.Equal(t, "bob", name)
			return &v1alpha1.User{}, w.person
		},
		Cluster: func(orgCluster, workspace string) string {
			require.Equal(t, "org1", orgCluster)
			require.Equal(t, "w", workspace)
			return w.cluster
		},
		RoleProblem: func(cluster string, r v1alpha1.RoleRef) tenancy.RoleProblem {
			require.Equal(t, "c", cluster)
			if problem, ok := w.problems[tenancy.RoleName(r)]; ok {
				return problem
			}
			return tenancy.RoleMissing
		},
		HasBinding: func(cluster, user string, r v1alpha1.RoleRef) bool {
			return cluster == "c" && user == "bob" && w.bindings[tenancy.RoleName(r)]
		},
		Patch: func(_ context.Context, _ controller.Key, patch []byte, subresource string) error {
			require.Equal(t, "status", subresource, "it writes nothing else")
			w.patches++
			w.held = kcptest.Patched(t, w.held, patch)
			return nil
		},
	})(t.Context(), controller.Key{Cluster: "org1", Name: w.held.Name})
	require.NoError(t, err)
	require.EqualValues(t, 3, w.held.Status.ObservedGeneration)
}

func (w *world) condition(t *testing.T, name string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(w.held.Status.Conditions, name)
	require.NotNil(t, c)
	return *c
}

func TestReconcile_isReadyAtOnceWithoutFurtherRoles(t *testing.T) {
	t.Parallel()
	inOrg := newWorld()
	inOrg.held.Spec, inOrg.held.Name = tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin).Spec, "bob"
	for _, w := range []*world{newWorld(), inOrg} {
		w.cluster = ""
		w.reconcile(t)
		require.Equal(t, v1alpha1.PhaseReady, w.held.Status.Phase, "it does not wait for the workspace")
		w.reconcile(t)
		require.Equal(t, 1, w.patches, "a status that is right is left alone")
	}
}

func TestReconcile_reportsAMissingUser(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.person = false
	w.reconcile(t)
	require.Equal(t, v1alpha1.PhaseProgressing, w.held.Status.Phase)
	require.Contains(t, w.condition(t, v1alpha1.ConditionUserFound).Message, "no person of the name bob")
	w.person = true
	w.reconcile(t)
	require.Equal(t, v1alpha1.PhaseReady, w.held.Status.Phase)
}

func TestReconcile_showsFurtherRolesAsTheyAreBound(t *testing.T) {
	t.Parallel()
	w := newWorld("view", "audit", "later", "kedge:workspace:admin", "cluster-admin")
	w.cluster = ""
	w.reconcile(t)
	require.Contains(t, w.condition(t, v1alpha1.ConditionRolesApplied).Message, "still being made")
	w.cluster = "c"

	// Reserved roles never count as bound, even if bindings of these names exist.
	w.held.Spec.Roles = append(w.held.Spec.Roles, v1alpha1.RoleRef{Name: "editor", Namespace: "dev"}, v1alpha1.RoleRef{Name: "above", Namespace: "dev"})
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

	w.held.Spec.Roles = w.held.Spec.Roles[:2]
	w.bindings["audit"] = true
	w.reconcile(t)
	require.Equal(t, []string{"audit", "view"}, w.held.Status.AppliedRoles, "in a stable order")
	require.Equal(t, v1alpha1.PhaseReady, w.held.Status.Phase)
	w.held.Spec.Roles = nil
	w.reconcile(t)
	require.Empty(t, w.held.Status.AppliedRoles)
}
