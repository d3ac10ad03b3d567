package views

import (
	"slices"
	"strings"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestPublish_comesAfterTheViewsChanged(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	var told []string
	v.Users.OnChange(func(c Change[*v1alpha1.User]) {
		_, ok := v.ByName("alice")
		require.Equal(t, c.New != nil, ok)
		told = append(told, "user")
	})
	v.ChildWorkspaces.OnChange(func(c Change[*kcptenancyv1alpha1.Workspace]) {
		require.Equal(t, wsUUID, v.Cluster("ws1").WorkspaceUUID)
		require.Equal(t, "org1", c.Cluster())
		told = append(told, "workspace")
	})
	// Every subscriber is called after the views have changed.
	v.ChildWorkspaces.OnChange(func(Change[*kcptenancyv1alpha1.Workspace]) {
		require.Equal(t, wsUUID, v.Cluster("ws1").WorkspaceUUID)
		told = append(told, "workspace")
	})
	v.OrgWorkspaces.OnChange(func(c Change[*kcptenancyv1alpha1.Workspace]) {
		require.Equal(t, tenancy.ClusterOrg, v.Cluster("org1").Kind)
		require.Equal(t, orgUUID, c.Object().Name)
		told = append(told, "org workspace")
	})
	v.Memberships.OnChange(func(c Change[*v1alpha1.Membership]) {
		_, ok := v.Membership("org1", "alice")
		require.Equal(t, c.New != nil, ok)
		require.Len(t, v.MembershipsOf("alice"), len(v.MembershipsIn("org1")))
		told = append(told, "membership")
	})
	users := v.Users.handle
	alice := user("u", "alice", "1", 1)
	users(nil, alice)
	users(nil, user("tenant", "mallory", "2", 1))
	workspaces := workspacesOf(v)
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
	var got []string
	name := func(u *v1alpha1.User) any { return u.Spec.DisplayName }
	v.Users.OnChange(func(c Change[*v1alpha1.User]) {
		event := ""
		for tells, is := range map[string]bool{"+": c.Added(), "-": c.Removed(), "†": c.Terminating(), "~": c.Differs(name)} {
			if is {
				event += tells
			}
		}
		got = append(got, strings.Join(slices.Sorted(strings.SplitSeq(event, "")), ""))
		require.Equal(t, event != "" && event != "+", c.Ends(name))
		require.Equal(t, event != "", c.Moved(name))
	})
	var followed int
	v.Users.Follow(name, func(Change[*v1alpha1.User]) { followed++ })
	first, second := user("u", "alice", "1", 1), user("u", "alice", "1", 2)
	first.UID, second.UID = "1", "2"
	versioned, renamed, deleted := first.DeepCopy(), first.DeepCopy(), first.DeepCopy()
	versioned.ResourceVersion, renamed.Spec.DisplayName = "2", "Alice"
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	v.Users.handle(nil, first)
	v.Users.handle(first, versioned)
	v.Users.handle(first, renamed)
	v.Users.handle(first, deleted)
	v.Users.handle(first, second)
	v.Users.handle(second, nil)
	require.Equal(t, []string{"+", "", "~", "†", "+-", "-"}, got)
	require.Equal(t, 5, followed)
}

func TestMetadata_leavesOutVersionsAndWhatIsNamed(t *testing.T) {
	t.Parallel()
	u := user("u", "alice", "1", 1)
	versioned := u.DeepCopy()
	versioned.ResourceVersion, versioned.Generation = "2", 2
	require.Equal(t, Metadata(u), Metadata(versioned))
	versioned.Annotations["a"] = "b"
	require.NotEqual(t, Metadata(u), Metadata(versioned))
	require.Equal(t, Metadata(u), Metadata(versioned, "a"))
	require.Equal(t, "b", versioned.Annotations["a"])
}
