package tenancy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func refs(names ...string) []v1alpha1.RoleRef {
	refs := make([]v1alpha1.RoleRef, 0, len(names))
	for _, name := range names {
		refs = append(refs, v1alpha1.RoleRef{Name: name})
	}
	return refs
}

func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("role-%d", i))
	}
	return names
}

func TestRolesThatTheHubWouldBindForAnybodyAreRefused(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{
		{"cluster-admin"},
		{"view", "cluster-admin"},
		{"system:masters"},
		{"system:kcp:clusterworkspace:admin"},
		{"kedge:workspace:admin"},
		{"kedge:"},
		{"kedge:workspace:sudo:user:bob"},
		{""},
		{"."},
		{".."},
		{"a/b"},
		{"../clusterroles/cluster-admin"},
		{"%2e%2e"},
		{"a\x00"},
		{"a\nb"},
		{"\u0085"},
		{"view", "view"},
		{strings.Repeat("a", 201)},
		numbered(33),
	} {
		err := tenancy.CheckRoles("roles", refs(names...))
		require.True(t, errs.Is(err, errs.Invalid), "%v", names)
		require.ErrorContains(t, err, "roles")
	}
	for _, names := range [][]string{
		nil,
		{"view"},
		{"view", "edit", "my:role", "kedge", "system", "cluster-admin-2", "a.b"},
		{strings.Repeat("a", 200)},
		numbered(32),
	} {
		require.NoError(t, tenancy.CheckRoles("roles", refs(names...)), "%v", names)
	}
	for name, reserved := range map[string]bool{
		"cluster-admin": true, "system:x": true, "kedge:x": true,
		"cluster-admins": false, "systemx": false, "my:system:x": false, "Kedge:x": false, "": false,
	} {
		require.Equal(t, reserved, tenancy.ReservedRole(name), name)
	}
}

func TestCheckRole_acceptsTheThreeRoles(t *testing.T) {
	t.Parallel()
	for _, role := range []v1alpha1.Role{"", "Admin", "Viewer", "owner", "admin "} {
		require.ErrorContains(t, tenancy.CheckRole("role", role), "role: must be admin, member or viewer", role)
	}
	require.NoError(t, tenancy.CheckRole("role", admin))
	require.NoError(t, tenancy.CheckRole("role", member))
	require.NoError(t, tenancy.CheckRole("role", v1alpha1.RoleViewer))
}

// A viewer of an Organization is none in its Workspaces, and one of a Workspace reads there.
func TestViewer_looksAndChangesNothing(t *testing.T) {
	t.Parallel()
	viewer := func(workspace string) v1alpha1.MembershipIndexEntry { return row("o", workspace, v1alpha1.RoleViewer) }
	require.Empty(t, tenancy.WorkspaceRole([]v1alpha1.MembershipIndexEntry{viewer("")}, "o", "w", v1alpha1.DefaultAccessNone))
	require.Equal(t, v1alpha1.RoleViewer, tenancy.WorkspaceRole([]v1alpha1.MembershipIndexEntry{viewer("")}, "o", "w", v1alpha1.DefaultAccessView))
	require.Equal(t, v1alpha1.RoleViewer, tenancy.WorkspaceRole([]v1alpha1.MembershipIndexEntry{viewer("w")}, "o", "w", v1alpha1.DefaultAccessNone))
	org := tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "alice")}
	person := func(name string) (*v1alpha1.User, bool) {
		u := &v1alpha1.User{}
		u.Name = name
		return u, true
	}
	grants := tenancy.Grants(org, "w", []*v1alpha1.Membership{
		tenancy.NewMembership("bob", "", v1alpha1.RoleViewer), tenancy.NewMembership("carol", "w", v1alpha1.RoleViewer),
	}, person)
	require.Len(t, grants, 1)
	require.Equal(t, []string{"carol", "viewer"}, []string{grants[0].User.Name, string(grants[0].Role)})
}

func TestO8_OnlyWhoMayActIsActive(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	deleted, going, pending, rejected := &v1alpha1.User{}, &v1alpha1.User{}, &v1alpha1.User{}, &v1alpha1.User{}
	deleted.Status.DeletionRequestedAt, going.DeletionTimestamp = &now, &now
	pending.Spec.Registration, rejected.Spec.Registration = v1alpha1.RegistrationPending, v1alpha1.RegistrationRejected
	for _, u := range []*v1alpha1.User{nil, deleted, going, pending, rejected} {
		require.False(t, tenancy.Active(u), "%+v", u)
	}
	require.True(t, tenancy.Active(&v1alpha1.User{}))
}

// The index is derived: neither a row that nothing stands behind nor a role that is
// too high opens anything.
func TestOnlyRowsWithAMembershipBehindThemAreHonoured(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	held := map[string]*v1alpha1.Membership{}
	for _, m := range []v1alpha1.Membership{in("bob", "", member), in("bob", "w", admin), in("bob", "ending", admin)} {
		held[m.Name] = &m
	}
	held["ending.bob"].DeletionTimestamp = &now
	membership := func(org, workspace string) (*v1alpha1.Membership, bool) {
		m, ok := held[tenancy.MembershipName("bob", workspace)]
		return m, ok && org == "o"
	}
	for name, c := range map[string]struct {
		rows, want []v1alpha1.MembershipIndexEntry
	}{
		"none":                      {nil, nil},
		"as they should be":         {[]v1alpha1.MembershipIndexEntry{entry("o", "", member), entry("o", "w", admin)}, []v1alpha1.MembershipIndexEntry{entry("o", "", member), entry("o", "w", admin)}},
		"too high":                  {[]v1alpha1.MembershipIndexEntry{entry("o", "", admin)}, []v1alpha1.MembershipIndexEntry{entry("o", "", member)}},
		"too low":                   {[]v1alpha1.MembershipIndexEntry{entry("o", "w", member)}, []v1alpha1.MembershipIndexEntry{entry("o", "w", member)}},
		"of a role that is none":    {[]v1alpha1.MembershipIndexEntry{entry("o", "", "owner")}, []v1alpha1.MembershipIndexEntry{entry("o", "", "owner")}},
		"of another org":            {[]v1alpha1.MembershipIndexEntry{entry("p", "", member), entry("o", "", member)}, []v1alpha1.MembershipIndexEntry{entry("o", "", member)}},
		"of a workspace never made": {[]v1alpha1.MembershipIndexEntry{entry("o", "other", member)}, nil},
		"going away":                {[]v1alpha1.MembershipIndexEntry{entry("o", "ending", admin), entry("o", "w", admin)}, []v1alpha1.MembershipIndexEntry{entry("o", "w", admin)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.rows)
			require.Equal(t, c.want, tenancy.Honoured(c.rows, membership))
			require.Equal(t, before, c.rows, "what memory holds is shared")
		})
	}
}

// A stream may stay open as long as all that it was opened with is still given.
func TestAnEntryCoversWhatItGivesAtLeast(t *testing.T) {
	t.Parallel()
	entry := func(cluster string, role v1alpha1.Role, sudo bool) tenancy.Entry {
		return tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: role, Sudo: sudo}
	}
	with := func(e tenancy.Entry, roles ...string) tenancy.Entry {
		for _, r := range roles {
			e.Roles = append(e.Roles, v1alpha1.RoleRef{Name: r})
		}
		return e
	}
	plain := entry("c", member, false)
	for name, c := range map[string]struct {
		now, earlier tenancy.Entry
		covers       bool
	}{
		"a role more":         {with(plain, "a", "b"), with(plain, "a"), true},
		"roles in any order":  {with(plain, "a", "b"), with(plain, "b", "a"), true},
		"a role taken":        {with(plain, "b"), with(plain, "a", "b"), false},
		"a role for another":  {with(plain, "b"), with(plain, "a"), false},
		"a role taken, admin": {entry("c", admin, false), with(plain, "a"), false},
		"the same":            {entry("c", member, false), entry("c", member, false), true},
		"promoted":            {entry("c", admin, false), entry("c", member, false), true},
		"demoted":             {entry("c", member, false), entry("c", admin, false), false},
		"demoted to a viewer": {entry("c", v1alpha1.RoleViewer, false), entry("c", member, false), false},
		"no role any more":    {entry("c", "", false), entry("c", v1alpha1.RoleViewer, false), false},
		"a viewer became one": {entry("c", member, false), entry("c", v1alpha1.RoleViewer, false), true},
		"sudo given":          {entry("c", member, true), entry("c", member, false), true},
		"sudo taken":          {entry("c", member, false), entry("c", member, true), false},
		"sudo taken, admin":   {entry("c", admin, false), entry("c", member, true), false},
		"another cluster":     {entry("d", admin, true), entry("c", member, false), false},
		"refused altogether":  {tenancy.Entry{}, entry("c", member, false), false},
	} {
		require.Equal(t, c.covers, c.now.Covers(c.earlier), name)
	}
}
