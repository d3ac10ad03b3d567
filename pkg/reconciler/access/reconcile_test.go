package access_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// cluster has the bindings in one Workspace.
type cluster struct {
	mu       sync.Mutex
	bindings map[string]*rbacv1.ClusterRoleBinding
}

func (c *cluster) list(string) []*rbacv1.ClusterRoleBinding {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*rbacv1.ClusterRoleBinding
	for _, b := range c.bindings {
		out = append(out, b)
	}
	return out
}

func (c *cluster) write(_ context.Context, _ string, b *rbacv1.ClusterRoleBinding) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bindings[b.Name] = b
	return nil
}

func (c *cluster) remove(_ context.Context, _ string, b *rbacv1.ClusterRoleBinding) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.bindings, b.Name)
	return nil
}

func named(memberships []*v1alpha1.Membership, name string) (*v1alpha1.Membership, bool) {
	for _, m := range memberships {
		if m.Name == name {
			return m, true
		}
	}
	return nil, false
}

// O-15: bindings follow the Memberships, and a right ends with its Membership.
func TestO15_bindingsFollowTheMemberships(t *testing.T) {
	t.Parallel()
	in := &cluster{bindings: map[string]*rbacv1.ClusterRoleBinding{}}
	memberships := []*v1alpha1.Membership{tenancy.NewMembership("alice", "", "admin"), tenancy.NewMembership("bob", "w", "member")}
	ready := false
	org := tenancy.NewOrganization("o", "O", "alice")
	var deleted *metav1.Time
	r := access.New(access.Cache{
		Workspace: func(controller.Key) (tenancy.Org, tenancy.Workspace, bool) {
			return tenancy.Org{Organization: org}, tenancy.Workspace{UUID: "w", ClusterID: "c", KCPReady: ready, DeletionRequestedAt: deleted}, true
		},
		Memberships: func(string, string) []*v1alpha1.Membership { return slices.Clone(memberships) },
		Membership:  func(_, name string) (*v1alpha1.Membership, bool) { return named(memberships, name) },
		User: func(name string) (*v1alpha1.User, bool) {
			u := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "kedge:" + name}}
			u.Name = name
			return u, name != ""
		},
		Bindings:     in.list,
		ClusterRoles: func(string) []*rbacv1.ClusterRole { return nil },

		NamespacedBindings: func(string) []*rbacv1.RoleBinding { return nil },
		Roles:              func(string) tenancy.RoleSource { return tenancy.RoleSource{} },
	}, access.Writes{WriteBinding: in.write, RemoveBinding: in.remove})
	reconcile := func() []string {
		_, err := r.Reconcile(t.Context(), controller.Key{Cluster: "org", Name: "w"})
		require.NoError(t, err)
		require.Zero(t, r.Missing(controller.Key{Cluster: "org", Name: "w"}))
		var names []string
		for name := range in.bindings {
			names = append(names, name)
		}
		return names
	}
	require.Empty(t, reconcile(), "nothing is written before kcp has finished")
	ready = true
	require.Equal(t, 2, r.Missing(controller.Key{Cluster: "org", Name: "w"}))
	require.Equal(t, 1, r.MissingOf(controller.Key{Cluster: "org", Name: "w"}, "bob"))
	require.ElementsMatch(t, []string{"kedge:workspace:admin:user:alice", "kedge:workspace:member:user:bob"}, reconcile())
	require.Zero(t, r.MissingOf(controller.Key{Cluster: "org", Name: "w"}, "bob"))
	memberships[1].Spec.Role = v1alpha1.RoleAdmin
	require.ElementsMatch(t, []string{"kedge:workspace:admin:user:alice", "kedge:workspace:admin:user:bob"}, reconcile())
	memberships = memberships[:1]
	require.Equal(t, []string{"kedge:workspace:admin:user:alice"}, reconcile())
	for _, mark := range []**metav1.Time{&org.Status.DeletionRequestedAt, &deleted} {
		*mark = &metav1.Time{}
		require.Empty(t, reconcile(), "what is deleted and cannot be frozen is closed")
		*mark = nil
		require.Equal(t, []string{"kedge:workspace:admin:user:alice"}, reconcile())
	}
}
