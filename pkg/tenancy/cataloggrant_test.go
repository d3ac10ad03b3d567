package tenancy_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestOrgAudience_hasWhoMayEnable(t *testing.T) {
	t.Parallel()
	const dev, gone, unscheduled = "dev", "gone", "unscheduled"
	now := metav1.Now()
	org := func() tenancy.Org {
		return tenancy.Org{Organization: tenancy.NewOrganization("o", "Acme", "alice"), ClusterID: "org"}
	}
	workspaces := []tenancy.Workspace{
		{UUID: dev, ClusterID: "c-dev"}, {UUID: gone, ClusterID: "c-gone", DeletionRequestedAt: &now}, {UUID: unscheduled},
	}
	inOrg := func(user string, role v1alpha1.Role) *v1alpha1.Membership {
		return tenancy.NewMembership(user, "", role)
	}
	in := func(user, ws string, role v1alpha1.Role) *v1alpha1.Membership {
		return tenancy.NewMembership(user, ws, role)
	}
	bot := func(name, ws string, role v1alpha1.Role) *v1alpha1.Bot {
		return tenancy.NewBot(name, ws, "CI", role, "alice", "")
	}
	user := func(name string) (*v1alpha1.User, bool) {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
		u.Spec.RBACIdentity = "id:" + name
		switch name {
		case "missing":
			return nil, false
		case "deleted":
			u.Status.DeletionRequestedAt = &now
		case "pending":
			u.Spec.Registration = v1alpha1.RegistrationPending
		case "nameless":
			u.Spec.RBACIdentity = ""
		}
		return u, true
	}
	leaving := in("alice", dev, v1alpha1.RoleAdmin)
	leaving.DeletionTimestamp = &now
	ending := bot("b", dev, v1alpha1.RoleAdmin)
	ending.DeletionTimestamp = &now
	deleted := org()
	deleted.Status.DeletionRequestedAt = &now
	for name, test := range map[string]struct {
		org         tenancy.Org
		memberships []*v1alpha1.Membership
		bots        []*v1alpha1.Bot
		want        []string
	}{
		"an admin of the organization":           {memberships: []*v1alpha1.Membership{inOrg("alice", v1alpha1.RoleAdmin)}, want: []string{"id:alice"}},
		"a member of the organization":           {memberships: []*v1alpha1.Membership{inOrg("alice", v1alpha1.RoleMember)}},
		"an admin of a workspace":                {memberships: []*v1alpha1.Membership{in("alice", dev, v1alpha1.RoleAdmin)}, want: []string{"id:alice"}},
		"a member of a workspace":                {memberships: []*v1alpha1.Membership{in("alice", dev, v1alpha1.RoleMember)}},
		"an admin of a soft-deleted workspace":   {memberships: []*v1alpha1.Membership{in("alice", gone, v1alpha1.RoleAdmin)}},
		"an admin of a workspace that is gone":   {memberships: []*v1alpha1.Membership{in("alice", "other", v1alpha1.RoleAdmin)}},
		"a membership that is being deleted":     {memberships: []*v1alpha1.Membership{leaving}},
		"people twice, sorted":                   {memberships: []*v1alpha1.Membership{in("bob", dev, v1alpha1.RoleAdmin), inOrg("bob", v1alpha1.RoleAdmin), inOrg("alice", v1alpha1.RoleAdmin)}, want: []string{"id:alice", "id:bob"}},
		"people who may not act":                 {memberships: []*v1alpha1.Membership{inOrg("missing", v1alpha1.RoleAdmin), inOrg("deleted", v1alpha1.RoleAdmin), inOrg("pending", v1alpha1.RoleAdmin), inOrg("nameless", v1alpha1.RoleAdmin)}},
		"an admin bot":                           {bots: []*v1alpha1.Bot{bot("b", dev, v1alpha1.RoleAdmin)}, want: []string{"system:kcp:serviceaccount:c-dev:default:b"}},
		"a member bot":                           {bots: []*v1alpha1.Bot{bot("b", dev, v1alpha1.RoleMember)}},
		"an admin bot of a deleted workspace":    {bots: []*v1alpha1.Bot{bot("b", gone, v1alpha1.RoleAdmin)}},
		"an admin bot of no logical cluster yet": {bots: []*v1alpha1.Bot{bot("b", unscheduled, v1alpha1.RoleAdmin)}},
		"a bot that is being deleted":            {bots: []*v1alpha1.Bot{ending}},
		"a soft-deleted organization":            {org: deleted, memberships: []*v1alpha1.Membership{inOrg("alice", v1alpha1.RoleAdmin)}, bots: []*v1alpha1.Bot{bot("b", dev, v1alpha1.RoleAdmin)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.org.Organization == nil {
				test.org = org()
			}
			var got []string
			for _, s := range tenancy.OrgAudience(test.org, workspaces, test.memberships, test.bots, user) {
				require.Equal(t, []string{rbacv1.GroupName, rbacv1.UserKind}, []string{s.APIGroup, s.Kind})
				got = append(got, s.Name)
			}
			require.Equal(t, test.want, got)
		})
	}
}

// An Organization with tens of thousands of admins must not make an object that etcd refuses.
func TestFitAudience_holdsToTheSizeOfAnObject(t *testing.T) {
	t.Parallel()
	people := func(n int) (all []rbacv1.Subject) {
		for i := range n {
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("z-person-%06d", i)})
		}
		return all
	}
	bots := func(n int) (all []rbacv1.Subject) {
		for i := range n {
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("system:kcp:serviceaccount:cluster:default:%06d", i)})
		}
		return all
	}
	few := append(bots(10), people(10)...)
	fits, left := tenancy.FitAudience(few)
	require.Equal(t, few, fits, "in the same order")
	require.Zero(t, left)

	fits, left = tenancy.FitAudience(append(bots(20000), people(5000)...))
	require.Equal(t, 25000, len(fits)+left)
	require.Equal(t, people(5000), fits[:5000], "people come first")
	raw, err := json.Marshal(fits)
	require.NoError(t, err)
	require.Less(t, len(raw), 1<<20+len(fits))
	require.Greater(t, len(raw), 1<<19)

	fits, left = tenancy.FitAudience(people(30000))
	require.Positive(t, left)
	require.Equal(t, people(30000)[:len(fits)], fits)
}

func TestCatalogGrant_permitsOneExport(t *testing.T) {
	t.Parallel()
	e := &v1alpha1.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: "e", Annotations: map[string]string{logicalcluster.AnnotationKey: "c"}}}
	e.Spec.APIExport = v1alpha1.APIExportRef{Path: "root:kedge:providers:acme", Name: "widgets.example.org"}
	g := tenancy.CatalogGrantOf(e, tenancy.GlobalAudience())
	role, binding := g[0].(*rbacv1.ClusterRole), g[1].(*rbacv1.ClusterRoleBinding)
	require.Equal(t, []rbacv1.PolicyRule{{
		Verbs: []string{"bind"}, APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apiexports"}, ResourceNames: []string{"widgets.example.org"},
	}}, role.Rules)
	require.True(t, tenancy.ManagedByHub(role))
	require.True(t, tenancy.ManagedByHub(binding))
	require.Equal(t, role.Name, binding.RoleRef.Name)
	require.Equal(t, "system:authenticated", binding.Subjects[0].Name)
	cluster, entry, ok := tenancy.ParseCatalogGrantName(binding.Name)
	require.Equal(t, []any{"c", "e", true}, []any{cluster, entry, ok})
	require.Empty(t, tenancy.CatalogGrantOf(e, nil))
	for _, other := range []string{"", "kedge:catalog:", "kedge:catalog:c", "kedge:catalog:c:", "kedge:catalog::e", "kedge:workspace:admin"} {
		_, _, ok := tenancy.ParseCatalogGrantName(other)
		require.False(t, ok, other)
	}
}

func TestAccess_leavesCatalogGrantsAlone(t *testing.T) {
	t.Parallel()
	bound := func(name string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}}}
	}
	other := bound("kedge:workspace:admin:user:gone")
	c := tenancy.AccessChanges([]tenancy.RBAC{bound(tenancy.CatalogGrantName("c", "e")), other}, nil)
	require.Equal(t, []tenancy.RBAC{other}, c.Remove)
}
