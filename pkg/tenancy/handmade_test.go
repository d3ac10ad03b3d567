package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestOnlyThePersonIsTakenOutOfATenantsBinding(t *testing.T) {
	t.Parallel()
	bob := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "kedge:bob"}
	others := []rbacv1.Subject{
		{Kind: rbacv1.UserKind, Name: "kedge:bobby"},
		{Kind: rbacv1.GroupKind, Name: "kedge:bob"},
		{Kind: rbacv1.ServiceAccountKind, Name: "kedge:bob", Namespace: "default"},
	}
	for _, tc := range []struct {
		name           string
		subjects, left []rbacv1.Subject
		named          bool
	}{
		{"alone", []rbacv1.Subject{bob}, []rbacv1.Subject{}, true},
		{"twice, among others", append([]rbacv1.Subject{bob, bob}, others...), others, true},
		{"not named", others, others, false},
	} {
		left, named := tenancy.WithoutPerson(tc.subjects, "kedge:bob")
		require.Equal(t, tc.named, named, tc.name)
		require.Equal(t, tc.left, left, tc.name)
	}
}

func TestWhoseRightToWriteBindingsStops(t *testing.T) {
	t.Parallel()
	of := func(role v1alpha1.Role, sudo bool) *v1alpha1.Membership {
		return tenancy.NewWorkspaceMembership("bob", "w", role, nil, sudo)
	}
	const admin, member = v1alpha1.RoleAdmin, v1alpha1.RoleMember
	for name, c := range map[string]struct {
		old, new *v1alpha1.Membership
		stops    bool
	}{
		"a new member":           {nil, of(member, true), false},
		"promoted":               {of(member, false), of(admin, false), false},
		"given sudo":             {of(admin, false), of(admin, true), false},
		"as it was":              {of(admin, true), of(admin, true), false},
		"a member is removed":    {of(member, false), nil, false},
		"demoted":                {of(admin, false), of(member, false), true},
		"demoted, with sudo":     {of(admin, false), of(member, true), true},
		"sudo is taken":          {of(member, true), of(member, false), true},
		"an admin is removed":    {of(admin, false), nil, true},
		"one with sudo likewise": {of(member, true), nil, true},
	} {
		require.Equal(t, c.stops, tenancy.StopsBinding(c.old, c.new), name)
	}
	require.True(t, tenancy.StopsBinding(tenancy.NewMembership("bob", "", admin), nil), "of an Org")
}

func TestABindingThatLetsPeopleWriteBindings(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]string{
		"kedge:workspace:admin:user:bob": "bob", "kedge:workspace:sudo:user:bob": "bob",
		"kedge:workspace:member:user:bob": "", "kedge:workspace:admin:user:carol": "", "mine": "",
	} {
		b := &rbacv1.ClusterRoleBinding{}
		b.Name, b.Labels = name, map[string]string{v1alpha1.UserLabel: "bob"}
		require.Equal(t, user, tenancy.BoundAtWill(b), name)
		b.Labels = nil
		require.Empty(t, tenancy.BoundAtWill(b), name)
	}
}
