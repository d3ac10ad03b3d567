package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func entry(org, ws string, role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
	return v1alpha1.MembershipIndexEntry{OrgUUID: org, WorkspaceUUID: ws, Role: role}
}

// An admin of an Organization is an admin of every Workspace; the reverse never holds (O-15).
func TestWorkspaceRole_isAdminForOrgAdmins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entries []v1alpha1.MembershipIndexEntry
		access  v1alpha1.DefaultAccess
		org, ws v1alpha1.Role
	}{
		"nobody":                           {nil, v1alpha1.DefaultAccessView, "", ""},
		"org admin":                        {[]v1alpha1.MembershipIndexEntry{entry("o", "", "admin")}, v1alpha1.DefaultAccessNone, "admin", "admin"},
		"org admin, member row":            {[]v1alpha1.MembershipIndexEntry{entry("o", "w", "member"), entry("o", "", "admin")}, v1alpha1.DefaultAccessNone, "admin", "admin"},
		"org member":                       {[]v1alpha1.MembershipIndexEntry{entry("o", "", "member")}, v1alpha1.DefaultAccessNone, "member", ""},
		"org member, view":                 {[]v1alpha1.MembershipIndexEntry{entry("o", "", "member")}, v1alpha1.DefaultAccessView, "member", "viewer"},
		"workspace admin only":             {[]v1alpha1.MembershipIndexEntry{entry("o", "w", "admin")}, v1alpha1.DefaultAccessView, "", "admin"},
		"workspace member, org view":       {[]v1alpha1.MembershipIndexEntry{entry("o", "", "member"), entry("o", "w", "member")}, v1alpha1.DefaultAccessView, "member", "member"},
		"admin of another workspace":       {[]v1alpha1.MembershipIndexEntry{entry("o", "other", "admin")}, v1alpha1.DefaultAccessView, "", ""},
		"admin of another org":             {[]v1alpha1.MembershipIndexEntry{entry("p", "", "admin")}, v1alpha1.DefaultAccessView, "", ""},
		"workspace of that UUID elsewhere": {[]v1alpha1.MembershipIndexEntry{entry("p", "w", "admin")}, v1alpha1.DefaultAccessView, "", ""},
	} {
		require.Equal(t, c.org, tenancy.OrgRole(c.entries, "o"), name)
		require.Equal(t, c.ws, tenancy.WorkspaceRole(c.entries, "o", "w", c.access), name)
	}
}

// spec.workspaceCreation decides who may create Workspaces (O-7).
func TestRequireWorkspaceCreation_followsTheSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role v1alpha1.Role
		who  v1alpha1.Who
		ok   bool
	}{
		{"admin", "admin", true}, {"admin", "members", true}, {"member", "members", true}, {"member", "admin", false}, {"", "members", false},
	} {
		s := tenancy.Scope{OrgRole: c.role, WorkspaceRole: "admin", Org: tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "x")}}
		s.Org.Spec.WorkspaceCreation = c.who
		err := s.RequireWorkspaceCreation()
		require.Equal(t, c.ok, err == nil, "%+v", c)
		require.Equal(t, !c.ok, errs.Is(err, errs.Forbidden))
	}
}

// The refusal names the limit, the use and whom to ask (O-5, O-6).
func TestQuotas_refuseOneTooMany(t *testing.T) {
	t.Parallel()
	require.NoError(t, tenancy.CheckOrgQuota(10, 9))
	require.NoError(t, tenancy.CheckWorkspaceQuota(50, 49))
	for _, err := range []error{tenancy.CheckOrgQuota(10, 10), tenancy.CheckWorkspaceQuota(10, 11)} {
		var e *errs.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, errs.Forbidden, e.Code)
		require.Equal(t, tenancy.CauseQuota, e.Causes[0].Type)
		require.Contains(t, e.Message, "10")
		require.Contains(t, e.Message, "ask a platform admin")
	}
	require.Equal(t, 10, tenancy.Limit(0, 10))
	require.Equal(t, 3, tenancy.Limit(3, 10))
}

func TestMayAct_refusesDeletedAndUnapproved(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*v1alpha1.User)
		says   string
	}{
		"approved": {func(*v1alpha1.User) {}, ""},
		"O-8: soft-deleted people may undelete themselves and no more": {func(u *v1alpha1.User) { u.Status.DeletionRequestedAt = &now }, "undelete"},
		"going away": {func(u *v1alpha1.User) { u.DeletionTimestamp = &now }, "deleted"},
		"pending":    {func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationPending }, "approval"},
		"rejected":   {func(u *v1alpha1.User) { u.Spec.Registration = v1alpha1.RegistrationRejected }, "rejected; ask"},
		"rejected with a reason": {func(u *v1alpha1.User) {
			u.Spec.Registration, u.Spec.RejectionReason = v1alpha1.RegistrationRejected, "no guests"
		}, "rejected (no guests); ask"},
	} {
		u := &v1alpha1.User{}
		c.change(u)
		require.NoError(t, tenancy.MayAct(u, true), name)
		if c.says == "" {
			require.NoError(t, tenancy.MayAct(u, false), name)
		} else {
			require.ErrorContains(t, tenancy.MayAct(u, false), c.says, name)
		}
	}
}

func TestGrantsFollowFromMembershipsAlone(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	people := map[string]*v1alpha1.User{}
	for _, name := range []string{"alice", "bob", "carol", "dave", "gone"} {
		u := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "kedge:" + name}}
		u.Name = name
		people[name] = u
	}
	people["gone"].Status.DeletionRequestedAt = &now
	ending := tenancy.NewMembership("dave", "w", "admin")
	ending.DeletionTimestamp = &now
	memberships := []*v1alpha1.Membership{
		tenancy.NewMembership("alice", "", "admin"), tenancy.NewMembership("alice", "w", "member"),
		tenancy.NewMembership("bob", "w", "member"), tenancy.NewMembership("bob", "other", "admin"),
		tenancy.NewMembership("carol", "", "member"), tenancy.NewMembership("gone", "", "admin"),
		tenancy.NewMembership("unknown", "w", "admin"), ending,
	}
	org := tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "alice")}
	roles := func() map[string]v1alpha1.Role {
		out := map[string]v1alpha1.Role{}
		for _, g := range tenancy.Grants(org, "w", memberships, func(n string) (*v1alpha1.User, bool) { u, ok := people[n]; return u, ok }) {
			out[g.User.Name] = g.Role
		}
		return out
	}
	require.Equal(t, map[string]v1alpha1.Role{"alice": "admin", "bob": "member"}, roles())
	org.Spec.DefaultAccess = v1alpha1.DefaultAccessView
	require.Equal(t, map[string]v1alpha1.Role{"alice": "admin", "bob": "member", "carol": "viewer"}, roles())
}

func TestOneBindingPerPersonAndRoleIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	person := func(name string, role v1alpha1.Role) tenancy.Grant {
		u := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "id-" + name}}
		u.Name = name
		return tenancy.Grant{User: u, Role: role}
	}
	alice, bob := person("alice", "admin"), person("bob", "member")
	none := func(v1alpha1.RoleRef) (rbacv1.RoleRef, tenancy.RoleProblem) {
		return rbacv1.RoleRef{}, tenancy.RoleMissing
	}
	of := func(grants ...tenancy.Grant) []tenancy.RBAC { return tenancy.AccessOf("w", grants, none) }
	names := map[string]bool{}
	for _, b := range of(alice, bob, person("alice", "member")) {
		require.False(t, names[b.GetName()], b.GetName())
		names[b.GetName()] = true
	}

	changes := tenancy.AccessChanges(nil, of(alice, bob))
	require.Len(t, changes.Write, 2)
	require.Equal(t, 2, changes.Count())
	held := of(alice, bob)
	require.Zero(t, tenancy.AccessChanges(held, of(alice, bob)).Count())
	changes = tenancy.AccessChanges(held, of(alice))
	require.Empty(t, changes.Write, "a second person's going never touches the first one's rights")
	require.Equal(t, held[1:], changes.Remove)
	require.Zero(t, changes.OnlyOf("alice").Count())
	require.Equal(t, 1, tenancy.AccessChanges(held, of(alice)).OnlyOf("bob").Count())
	first := held[0].(*rbacv1.ClusterRoleBinding)
	first.Subjects[0].Name, first.ResourceVersion = "mallory", "7"
	changes = tenancy.AccessChanges(held, of(alice, bob))
	require.Equal(t, 1, changes.Count())
	require.Equal(t, "id-alice", changes.Write[0].(*rbacv1.ClusterRoleBinding).Subjects[0].Name)
	require.Equal(t, "7", changes.Write[0].GetResourceVersion())

	held = of(alice, bob)
	held[0].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	changes = tenancy.AccessChanges(held, of(alice, bob))
	require.Equal(t, 1, changes.Count(), "what is being deleted counts for nothing")
	require.Equal(t, held[0].GetName(), changes.Write[0].GetName())
	require.Empty(t, changes.Write[0].GetFinalizers())
	require.Len(t, tenancy.AccessChanges(nil, append(of(alice), of(alice)...)).Write, 1, "a role that is named twice is bound once")
}

// Whatever is in it, it ends.
func TestARoleThatIsBeingDeletedIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	want := tenancy.ClusterRoles(nil)[0]
	have := want.DeepCopy()
	require.True(t, tenancy.SameRBAC(have, want))
	have.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	require.False(t, tenancy.SameRBAC(have, want))
}

// Elevation is one person's own, in one Workspace, and never standing.
func TestSudoIsForOnePersonInOneWorkspace(t *testing.T) {
	t.Parallel()
	bob := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "kedge:bob"}}
	bob.Name = "bob"
	grant := tenancy.Grant{User: bob, Role: v1alpha1.RoleMember, Roles: []v1alpha1.RoleRef{{Name: "there"}, {Name: "missing"}}, Sudo: true}
	a := tenancy.AccessOf("w", []tenancy.Grant{grant}, func(r v1alpha1.RoleRef) (rbacv1.RoleRef, tenancy.RoleProblem) {
		if r.Name != "there" {
			return rbacv1.RoleRef{}, tenancy.RoleMissing
		}
		return rbacv1.RoleRef{}, ""
	})
	var role *rbacv1.ClusterRole
	bound := map[string]string{}
	for _, o := range a {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			require.Nil(t, role)
			role = o
		case *rbacv1.ClusterRoleBinding:
			bound[o.Subjects[0].Name+" in "+o.Name] = o.RoleRef.Name
		}
	}
	require.Equal(t, []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"kedge:bob"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{"kedge:workspace:w:sudo", "system:authenticated"}},
	}, role.Rules)
	require.Equal(t, map[string]string{
		"kedge:bob in kedge:workspace:member:user:bob":      "kedge:workspace:member",
		"kedge:bob in kedge:workspace:extra:there:user:bob": "there",
		"kedge:bob in kedge:workspace:sudo:user:bob":        "kedge:workspace:sudo:user:bob",
		"kedge:workspace:w:sudo in kedge:workspace:sudo":    "kedge:workspace:admin",
	}, bound)
	require.Equal(t, 5, tenancy.AccessChanges(a, nil).Count(), "all of it goes with the last who has sudo")
	foreign := role.DeepCopy()
	foreign.Labels = nil
	require.Zero(t, tenancy.AccessChanges([]tenancy.RBAC{foreign}, nil).Count(), "tenants' own ClusterRoles are left alone")
}

// quality.md, hostile input 5.
func TestNoTenantRoleHoldsWhatEscalates(t *testing.T) {
	t.Parallel()
	roles := tenancy.ClusterRoles([]tenancy.BoundResource{
		{Group: "example.com", Resource: "widgets"}, {Group: "core.kcp.io", Resource: "logicalclusters"},
		{Group: "tenancy.kcp.io", Resource: "workspaces"}, {Group: "topology.kcp.io", Resource: "partitions"},
		{Group: "rbac.authorization.k8s.io", Resource: "things"}, {Resource: "pods"},
	})
	require.Len(t, roles, 3)
	allows := func(r *rbacv1.ClusterRole, verb, group, resource string) bool {
		for _, rule := range r.Rules {
			if has(rule.Verbs, verb) && has(rule.APIGroups, group) && (has(rule.Resources, resource) || has(rule.Resources, "*")) {
				return true
			}
		}
		return false
	}
	for _, r := range roles {
		for _, rule := range r.Rules {
			for _, bad := range []string{"*", "impersonate", "escalate", "bind"} {
				require.NotContains(t, rule.Verbs, bad, r.Name)
			}
			require.NotContains(t, rule.APIGroups, "*", r.Name)
			require.NotContains(t, rule.Resources, "*", r.Name)
			require.NotContains(t, rule.NonResourceURLs, "*", r.Name)
		}
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			require.False(t, allows(r, verb, "core.kcp.io", "logicalclusters"), r.Name)
			require.False(t, allows(r, verb, "tenancy.kcp.io", "workspaces"), r.Name)
			for resource, group := range map[string]string{
				"mutatingadmissionpolicies": "admissionregistration.k8s.io", "validatingadmissionpolicybindings": "admissionregistration.k8s.io",
				"resourcequotas": "", "resourcequotas/status": "", "namespaces/finalize": "", "pods": "", "tokenreviews": "authentication.k8s.io",
				"apibindings/status": "apis.kcp.io", "certificatesigningrequests": "certificates.k8s.io", "cachedresources": "cache.kcp.io",
				"partitions": "topology.kcp.io", "things": "rbac.authorization.k8s.io", "customresourcedefinitions/status": "apiextensions.k8s.io",
			} {
				require.False(t, allows(r, verb, group, resource), "%s %s", r.Name, resource)
			}
		}
		require.True(t, allows(r, "get", "example.com", "widgets"), r.Name)
	}
	admin, member, viewer := roles[0], roles[1], roles[2]
	require.True(t, allows(admin, "create", "rbac.authorization.k8s.io", "clusterrolebindings"))
	require.True(t, allows(admin, "delete", "apis.kcp.io", "apibindings"))
	require.True(t, allows(admin, "get", "apis.kcp.io", "apibindings/status"))
	require.False(t, allows(admin, "patch", "apis.kcp.io", "apibindings/status"), "it tells what the hub sees")
	require.True(t, allows(member, "create", "", "secrets"))
	require.True(t, allows(member, "delete", "example.com", "widgets"))
	require.False(t, allows(member, "create", "", "serviceaccounts/token"))
	require.False(t, allows(member, "create", "", "serviceaccounts"))
	require.False(t, allows(member, "update", "example.com", "widgets/status"))
	require.True(t, allows(admin, "update", "example.com", "widgets/status"))
	require.True(t, allows(admin, "patch", "example.com", "widgets/scale"))
	require.True(t, allows(admin, "create", "", "serviceaccounts/token"))
	require.True(t, allows(admin, "create", "authorization.k8s.io", "subjectaccessreviews"))
	require.False(t, allows(member, "create", "rbac.authorization.k8s.io", "roles"))
	require.False(t, allows(member, "create", "apis.kcp.io", "apibindings"))
	require.True(t, allows(admin, "list", "admissionregistration.k8s.io", "validatingadmissionpolicies"))
	require.True(t, allows(viewer, "get", "", "configmaps"))
	require.False(t, allows(viewer, "get", "", "secrets"))
	require.False(t, allows(viewer, "create", "", "configmaps"))
}

func has(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// The rows have what a switcher shows, in a stable order (O-3, O-4).
func TestIndexEntries_listAllMemberships(t *testing.T) {
	t.Parallel()
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	deleted := metav1.NewTime(created.Add(time.Hour))
	a := tenancy.Org{Organization: tenancy.NewOrganization("a", "A", "alice")}
	a.CreationTimestamp = created
	b := tenancy.Org{Organization: tenancy.NewOrganization("b", "B", "bob")}
	b.Status.DeletionRequestedAt = &deleted
	entries := tenancy.IndexEntries([]tenancy.IndexedMembership{
		{Org: b, Role: "member", Workspace: &tenancy.Workspace{UUID: "w"}},
		{Org: a, Role: "member", Workspace: &tenancy.Workspace{UUID: "w", DisplayName: "W", ClusterID: "c", DeletionRequestedAt: &deleted}},
		{Org: a, Role: "admin", FirstAdmin: "alice"},
	})
	require.Len(t, entries, 3)
	require.Equal(t, v1alpha1.MembershipIndexEntry{OrgUUID: "a", OrgDisplayName: "A", OrgCreatedAt: created, OrgFirstAdmin: "alice", Role: "admin"}, entries[0])
	require.Equal(t, "W", entries[1].WorkspaceDisplayName)
	require.Equal(t, &deleted, entries[1].SoftDeletedAt)
	require.Equal(t, &deleted, entries[2].SoftDeletedAt, "what is in a deleted Org is deleted with it")
}

func TestFirstAdmin_isCreatorOrOldest(t *testing.T) {
	t.Parallel()
	early, late := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	older, newer, member := tenancy.NewMembership("old", "", "admin"), tenancy.NewMembership("new", "", "admin"), tenancy.NewMembership("aaa", "", "member")
	older.CreationTimestamp, newer.CreationTimestamp, member.CreationTimestamp = early, late, early
	all := func() []*v1alpha1.Membership { return []*v1alpha1.Membership{newer, member, older} }
	none := func() []*v1alpha1.Membership { return nil }
	require.Equal(t, "creator", tenancy.FirstAdmin(tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "creator")}, nil), "nobody is looked at")
	gitops := tenancy.Org{Organization: &v1alpha1.Organization{}}
	require.Equal(t, "old", tenancy.FirstAdmin(gitops, all))
	require.Empty(t, tenancy.FirstAdmin(gitops, none))
}
