package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	gateOrg     = "11111111-1111-4111-8111-111111111111"
	gateForeign = "22222222-2222-4222-8222-222222222222"
	gateMissing = "33333333-3333-4333-8333-333333333333"
	gateGone    = "44444444-4444-4444-8444-444444444444"
	gateOpen    = "55555555-5555-4555-8555-555555555555"

	gateWS      = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaa1"
	gateWSNew   = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaa2"
	gateWSGone  = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaa3"
	gateWSMoved = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaa4"
)

// world replaces the caches. Every Organization has the same Workspaces; the ID of a logical
// cluster consists of the first digits of the UUIDs.
type world struct {
	orgs     map[string]tenancy.Org
	clusters map[string]tenancy.Cluster
	indexes  map[string][]v1alpha1.MembershipIndexEntry
}

func row(org, workspace string, role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
	return v1alpha1.MembershipIndexEntry{OrgUUID: org, WorkspaceUUID: workspace, Role: role}
}

func newWorld() *world {
	w := &world{
		orgs:     map[string]tenancy.Org{},
		clusters: map[string]tenancy.Cluster{"usersid": {ID: "usersid", Kind: tenancy.ClusterHub}},
		indexes: map[string][]v1alpha1.MembershipIndexEntry{
			"admin":   {row(gateOrg, "", v1alpha1.RoleAdmin), row(gateGone, "", v1alpha1.RoleAdmin), row(gateOpen, "", v1alpha1.RoleAdmin)},
			"orgonly": {row(gateOrg, "", v1alpha1.RoleMember), row(gateOpen, "", v1alpha1.RoleMember)},
			"wsonly":  {row(gateOrg, gateWS, v1alpha1.RoleMember), row(gateOrg, gateWSGone, v1alpha1.RoleMember)},
			"other":   {row(gateForeign, "", v1alpha1.RoleAdmin)},
		},
	}
	now := metav1.Now()
	for _, uuid := range []string{gateOrg, gateForeign, gateGone, gateOpen} {
		o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: uuid}}
		switch uuid {
		case gateGone:
			o.Status.DeletionRequestedAt = &now
		case gateOpen:
			o.Spec.DefaultAccess = v1alpha1.DefaultAccessView
		}
		w.orgs[uuid] = tenancy.Org{Organization: o, ClusterID: "org" + uuid[:1]}
		w.clusters["org"+uuid[:1]] = tenancy.Cluster{Kind: tenancy.ClusterOrg, OrgUUID: uuid}
		for _, ws := range []string{gateWS, gateWSGone, gateWSMoved} {
			w.clusters[clusterID(uuid, ws)] = tenancy.Cluster{Kind: tenancy.ClusterWorkspace, OrgUUID: uuid, WorkspaceUUID: ws}
		}
	}
	return w
}

func clusterID(org, ws string) string { return "ws" + org[:1] + ws[len(ws)-1:] }

func (w *world) workspace(org, uuid string) (tenancy.Workspace, bool) {
	ws := tenancy.Workspace{UUID: uuid, OrgUUID: org, ClusterID: clusterID(org, uuid)}
	switch uuid {
	case gateWS:
	case gateWSNew:
		ws.ClusterID = ""
	case gateWSGone:
		now := metav1.Now()
		ws.DeletionRequestedAt = &now
	case gateWSMoved:
		ws.ClusterID = "elsewhere"
	default:
		return tenancy.Workspace{}, false
	}
	_, ok := w.orgs[org]
	return ws, ok
}

func (w *world) gate(t *testing.T) tenancy.Gate {
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	return tenancy.Gate{
		Tree:      tree,
		Cluster:   func(id string) tenancy.Cluster { return w.clusters[id] },
		Index:     func(user string) []v1alpha1.MembershipIndexEntry { return w.indexes[user] },
		Org:       func(uuid string) (tenancy.Org, bool) { o, ok := w.orgs[uuid]; return o, ok },
		Workspace: w.workspace,
		User: func(name string) (*v1alpha1.User, bool) {
			u := &v1alpha1.User{}
			u.Name = name
			return u, name != "unknown"
		},
		Sudo: func(user, _, ws string) bool { return user == "wsonly" && ws == gateWS },
	}
}

func path(org, ws string) string { return "root:kedge:orgs:" + org + ":" + ws }

func TestGate_admitsMembers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, user, org, ws string
		role                v1alpha1.Role
	}{
		{"O-15 an Org's admin is admin of its Workspaces", "admin", gateOrg, gateWS, v1alpha1.RoleAdmin},
		{"a Workspace's member", "wsonly", gateOrg, gateWS, v1alpha1.RoleMember},
		{"an Org's member where defaultAccess is view", "orgonly", gateOpen, gateWS, v1alpha1.RoleViewer},
		{"another Org's admin, there", "other", gateForeign, gateWS, v1alpha1.RoleAdmin},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, cluster := range []string{clusterID(tc.org, tc.ws), path(tc.org, tc.ws)} {
				entry, err := newWorld().gate(t).Enter(tc.user, cluster)
				require.NoError(t, err, cluster)
				require.Equal(t, tc.role, entry.Role, cluster)
				require.Equal(t, clusterID(tc.org, tc.ws), entry.Workspace.ClusterID, cluster)
			}
		})
	}
}

func TestGate_refusesWorkspacesOfTheHub(t *testing.T) {
	t.Parallel()
	direct := func(user, cluster string) {
		t.Helper()
		entry, err := newWorld().gate(t).Enter(user, cluster)
		var e *errs.Error
		require.ErrorAs(t, err, &e, cluster)
		require.Equal(t, errs.Forbidden, e.Code, cluster)
		require.Len(t, e.Causes, 1, cluster)
		require.Equal(t, tenancy.CauseOrgWorkspace, e.Causes[0].Type, cluster)
		require.Empty(t, entry, cluster)
	}
	for _, cluster := range []string{
		"root", "root:kedge", "root:kedge:users", "root:kedge:providers", "root:kedge:orgs", "usersid",
		"root:kedge:orgs:" + gateOrg, "root:kedge:orgs:" + gateForeign, "root:kedge:orgs:" + gateMissing,
	} {
		for _, user := range []string{"admin", "wsonly", "nobody"} {
			direct(user, cluster)
		}
	}
	// The workspace of an Organization by ID, for callers who are members.
	direct("admin", "org1")
	direct("orgonly", "org1")
	direct("wsonly", "org1")
	direct("admin", "org4")
}

func TestGate_refusesForeignAndUnknownAlike(t *testing.T) {
	t.Parallel()
	gate := newWorld().gate(t)
	_, want := gate.Enter("nobody", "nosuchcluster")
	require.True(t, errs.Is(want, errs.Forbidden))
	for name, tc := range map[string]struct{ user, cluster string }{
		"unknown cluster":                         {"admin", "nosuchcluster"},
		"foreign Workspace by ID":                 {"admin", clusterID(gateForeign, gateWS)},
		"foreign Workspace by path":               {"admin", path(gateForeign, gateWS)},
		"foreign Workspace, soft-deleted":         {"admin", clusterID(gateForeign, gateWSGone)},
		"foreign Workspace, not placed yet":       {"admin", path(gateForeign, gateWSNew)},
		"foreign Org's own workspace by ID":       {"admin", "org2"},
		"missing Org":                             {"admin", path(gateMissing, gateWS)},
		"missing Workspace of one's own Org":      {"admin", path(gateOrg, gateMissing)},
		"another Workspace of the Org":            {"wsonly", path(gateOrg, gateWSNew)},
		"soft-deleted Org, not one's own":         {"other", clusterID(gateGone, gateWS)},
		"an Org's member is in none of its":       {"orgonly", clusterID(gateOrg, gateWS)},
		"an ID whose Workspace has another now":   {"admin", clusterID(gateOrg, gateWSMoved)},
		"a person without an index":               {"nobody", clusterID(gateOrg, gateWS)},
		"a kcp workspace that is none of the hub": {"admin", "system"},
	} {
		entry, err := gate.Enter(tc.user, tc.cluster)
		require.Equal(t, want, err, name)
		require.Empty(t, entry, name)
	}
}

func TestGate_tellsMembersOfADeletion(t *testing.T) {
	t.Parallel()
	gate := newWorld().gate(t)
	for _, tc := range []struct{ user, cluster string }{
		{"admin", clusterID(gateOrg, gateWSGone)}, {"wsonly", path(gateOrg, gateWSGone)},
		{"admin", clusterID(gateGone, gateWS)}, {"admin", path(gateGone, gateWS)},
	} {
		entry, err := gate.Enter(tc.user, tc.cluster)
		require.True(t, errs.Is(err, errs.Forbidden), tc.cluster)
		require.ErrorContains(t, err, "undelete", tc.cluster)
		require.Empty(t, entry)
	}
}

func TestGate_tellsMembersToWaitForScheduling(t *testing.T) {
	t.Parallel()
	_, err := newWorld().gate(t).Enter("admin", path(gateOrg, gateWSNew))
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, errs.Unavailable, e.Code)
	require.NotZero(t, e.RetryAfter)
}

func TestGate_refusesMalformedNames(t *testing.T) {
	t.Parallel()
	gate := newWorld().gate(t)
	for _, cluster := range []string{
		"", "*", "system:admin", "ROOT", "root:", ":root", "root:other", "root:kedge:other", "kedge",
		path(gateOrg, gateWS) + ":deeper", path(gateOrg, "AAAAAAAA-aaaa-4aaa-8aaa-aaaaaaaaaaa1"), path(gateOrg, ""),
		"root:kedge:orgs:not-a-uuid", "root:elsewhere:orgs:" + gateOrg + ":" + gateWS, "ws11/../ws21", "ws11%2f",
	} {
		entry, err := gate.Enter("admin", cluster)
		require.Error(t, err, cluster)
		require.Empty(t, entry, cluster)
		require.NotEqual(t, errs.Internal, errs.CodeOf(err), cluster)
		if !tenancy.IsClusterID(cluster) {
			require.True(t, errs.Is(err, errs.NotFound), cluster)
		}
	}
}

func TestEntry_givesItsRoleAndLowerOnes(t *testing.T) {
	t.Parallel()
	member := tenancy.Entry{Role: v1alpha1.RoleMember, Roles: []v1alpha1.RoleRef{{Name: "extra"}, {Name: "editor", Namespace: "dev"}}}
	for role, gives := range map[string]bool{
		tenancy.ClusterRoleViewer: true, tenancy.ClusterRoleMember: true, "extra": true, "kedge:workspace:sudo:user:bob": true,
		tenancy.ClusterRoleAdmin: false, "another": false, "": false,
		"dev/editor": true, "editor": false, "prod/editor": false, "dev/extra": false,
	} {
		require.Equal(t, gives, member.Gives(role), role)
	}
	require.False(t, tenancy.Entry{}.Gives(tenancy.ClusterRoleViewer))
}

func TestBoundRoles_ofEntriesAndMemberships(t *testing.T) {
	t.Parallel()
	roles := []v1alpha1.RoleRef{{Name: "auditor"}}
	require.Equal(t, []string{tenancy.ClusterRoleMember, "auditor"}, tenancy.Entry{Role: v1alpha1.RoleMember, Roles: roles}.BoundRoles())
	require.Equal(t, []string{tenancy.ClusterRoleViewer}, tenancy.Entry{Role: v1alpha1.RoleViewer}.BoundRoles())
	require.Equal(t, []string{tenancy.ClusterRoleMember, "auditor"}, tenancy.BoundRolesOf(tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, roles, false)))
	require.Equal(t, []string{tenancy.ClusterRoleAdmin}, tenancy.BoundRolesOf(tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)))
	require.Equal(t, []string{tenancy.ClusterRoleViewer}, tenancy.BoundRolesOf(tenancy.NewMembership("bob", "", v1alpha1.RoleMember)))
}
