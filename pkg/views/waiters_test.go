package views

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestAwait_returnsWhenItsConditionHolds(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	refs := []tenancy.Ref{tenancy.UserRef("alice")}
	go func() {
		done <- v.Await(ctx, refs, func() bool { _, ok := v.ByName("alice"); return ok })
	}()
	v.Users.handle(nil, user("u", "alice", "1", 1))
	require.NoError(t, <-done)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, v.Await(ended, refs, func() bool { return false }), context.Canceled)
	require.NoError(t, v.Await(ended, refs, func() bool { return true }), "what holds already needs no time")
	require.Empty(t, v.waiters.byRef, "nobody waits any more")
}

func TestAwait_isWokenByWhatItNames(t *testing.T) {
	t.Parallel()
	inWorkspace := at("org1", tenancy.NewWorkspaceMembership("bob", wsUUID, v1alpha1.RoleMember, nil, false))
	inOrg := at("org1", tenancy.NewMembership("bob", "", v1alpha1.RoleMember))
	organization := at("o", tenancy.NewOrganization(orgUUID, "O", "carol"))
	organization.Annotations[v1alpha1.CreatedByAnnotation] = "carol"
	index := at("u", &v1alpha1.UserMembershipIndex{})
	index.Name = "bob"
	role := at("ws1", &rbacv1.ClusterRole{})
	binding := at("ws1", &rbacv1.ClusterRoleBinding{})
	binding.Labels = map[string]string{v1alpha1.UserLabel: "bob"}
	namespaced := at("ws1", &rbacv1.RoleBinding{})
	namespaced.Labels = binding.Labels
	for name, c := range map[string]struct {
		change func(*Views)
		wakes  []string
	}{
		"User":                    {func(v *Views) { v.Users.handle(nil, user("u", "bob", "1", 1)) }, []string{"bob"}},
		"index":                   {func(v *Views) { v.Indexes.handle(nil, index) }, []string{"bob"}},
		"Organization":            {func(v *Views) { v.Organizations.handle(nil, organization) }, []string{"carol", "org", "workspace"}},
		"Workspace of the Org":    {func(v *Views) { workspacesOf(v)(nil, workspace("o", orgUUID, "org1")) }, []string{"org", "workspace"}},
		"child Workspace":         {func(v *Views) { workspacesOf(v)(nil, workspace("org1", wsUUID, "ws1")) }, []string{"org", "workspace"}},
		"Membership, Org":         {func(v *Views) { v.Memberships.handle(nil, inOrg) }, []string{"bob", "org"}},
		"Membership, Workspace":   {func(v *Views) { v.Memberships.handle(nil, inWorkspace) }, []string{"bob", "org", "workspace"}},
		"ClusterRole":             {func(v *Views) { v.ClusterRoles.handle(nil, role) }, []string{"org", "workspace"}},
		"Role":                    {func(v *Views) { v.Roles.handle(nil, at("ws1", &rbacv1.Role{})) }, []string{"org", "workspace"}},
		"RoleBinding":             {func(v *Views) { v.RoleBindings.handle(nil, namespaced) }, []string{"bob", "org", "workspace"}},
		"ClusterRoleBinding":      {func(v *Views) { v.ClusterRoleBindings.handle(nil, binding) }, []string{"bob", "org", "workspace"}},
		"User of another cluster": {func(v *Views) { v.Users.handle(nil, user("tenant", "bob", "1", 1)) }, nil},
		"another Org's Workspace": {func(v *Views) { workspacesOf(v)(nil, workspace("org2", orgUUID, "ws2")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViews(t)
			workspacesOf(v)(nil, workspace("o", orgUUID, "org1"))
			workspacesOf(v)(nil, workspace("org1", wsUUID, "ws1"))
			// In this test, no informer feeds the view of Memberships.
			v.Memberships.change = nil
			waiting := map[string]chan struct{}{}
			for who, ref := range map[string]tenancy.Ref{
				"bob": tenancy.UserRef("bob"), "carol": tenancy.UserRef("carol"), "stranger": tenancy.UserRef("stranger"),
				"org": tenancy.OrgRef(orgUUID), "workspace": tenancy.WorkspaceRef(wsUUID), "foreign org": tenancy.OrgRef(wsUUID),
			} {
				waiting[who] = v.waiters.add([]tenancy.Ref{ref})
			}
			c.change(v)
			var woken []string
			for who, touched := range waiting {
				if len(touched) > 0 {
					woken = append(woken, who)
				}
			}
			require.ElementsMatch(t, c.wakes, woken)
		})
	}
}

// One change of a User while n unrelated requests wait.
func BenchmarkAwait_strangers(b *testing.B) {
	for _, strangers := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint(strangers), func(b *testing.B) {
			var w waiters
			for i := range strangers {
				refs := []tenancy.Ref{tenancy.UserRef(fmt.Sprint("stranger-", i)), tenancy.OrgRef(fmt.Sprint("org-", i))}
				touched := w.add(refs)
				b.Cleanup(func() {
					w.remove(touched, refs)
					require.Empty(b, touched, "a stranger was woken")
				})
			}
			about := []tenancy.Ref{tenancy.UserRef("bob"), tenancy.OrgRef(orgUUID)}
			b.ReportAllocs()
			for b.Loop() {
				w.touch(func() []tenancy.Ref { return about })
			}
		})
	}
}
