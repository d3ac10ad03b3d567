package views

import (
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestPublish_comesAfterTheViewsChanged(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	var told []string
	v.OnUser(func(c Change[*v1alpha1.User]) {
		_, ok := v.ByName("alice")
		require.Equal(t, c.New != nil, ok)
		told = append(told, "user")
	})
	v.OnWorkspace(func(c Change[*kcptenancyv1alpha1.Workspace]) {
		require.Equal(t, wsUUID, v.Cluster("ws1").WorkspaceUUID)
		require.Equal(t, "org1", c.Cluster())
		told = append(told, "workspace")
	})
	// Every subscriber is called after the views have changed.
	v.OnWorkspace(func(Change[*kcptenancyv1alpha1.Workspace]) {
		require.Equal(t, wsUUID, v.Cluster("ws1").WorkspaceUUID)
		told = append(told, "workspace")
	})
	v.OnOrgWorkspace(func(c Change[*kcptenancyv1alpha1.Workspace]) {
		require.Equal(t, tenancy.ClusterOrg, v.Cluster("org1").Kind)
		require.Equal(t, orgUUID, c.Object().Name)
		told = append(told, "org workspace")
	})
	v.OnMembership(func(c Change[*v1alpha1.Membership]) {
		_, ok := v.Membership("org1", "alice")
		require.Equal(t, c.New != nil, ok)
		require.Len(t, v.MembershipsOf("alice"), len(v.MembershipsIn("org1")))
		told = append(told, "membership")
	})
	users := v.kinds.users.handler(&v.waiters)
	alice := user("u", "alice", "1", 1)
	users(nil, alice)
	users(nil, user("tenant", "mallory", "2", 1))
	workspaces := v.workspaceHandler()
	workspaces(nil, workspace("o", orgUUID, "org1"))
	workspaces(nil, workspace("org1", wsUUID, "ws1"))
	memberships := membershipsOf(v)
	m := at("org1", tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin))
	memberships(nil, m)
	memberships(m, nil)
	users(alice, nil)
	require.Equal(t, []string{"user", "org workspace", "workspace", "workspace", "membership", "membership", "user"}, told,
		"a User from another logical cluster is not published")
}

func TestPublish_tellsAddedRemovedAndRecreated(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	var got []Fields
	v.OnUser(func(c Change[*v1alpha1.User]) { got = append(got, c.Moved) })
	change := v.kinds.users.handler(&v.waiters)
	first, second := user("u", "alice", "1", 1), user("u", "alice", "1", 2)
	first.UID, second.UID = "1", "2"
	change(nil, first)
	change(first, first.DeepCopy())
	change(first, second)
	change(second, nil)
	require.Equal(t, []Fields{Added, 0, Added | Removed, Removed}, got)
}

func TestChange_asksForFields(t *testing.T) {
	t.Parallel()
	c := Change[*v1alpha1.User]{New: &v1alpha1.User{}, Moved: Status | Claims}
	require.True(t, c.Any(Claims|Quota))
	require.False(t, c.Any(Quota|Added))
	require.True(t, c.AnyBut(Status))
	require.False(t, c.AnyBut(Status|Claims))
}
