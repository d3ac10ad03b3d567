package tenancy_test

import (
	"slices"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestAllowedSubjects_dropPeopleBotsAndForeignGroups(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	stay := []rbacv1.Subject{
		{Kind: "ServiceAccount", Name: "robot", Namespace: "default"}, {Kind: "ServiceAccount", Name: "robot"},
		{Kind: "ServiceAccount", Name: botWorkspace, Namespace: "ci"}, {Kind: "Group", Name: "system:serviceaccounts:ci"},
		{Kind: "User", Name: "kcp-admin"},
	}
	people := []rbacv1.Subject{
		{Kind: "User", Name: "oidc:alice"}, {Kind: "User", Name: "system:serviceaccount:default:robot"}, {Kind: "Group", Name: "dev"},
		{Kind: "Group", Name: "system:authenticated"}, {Kind: "Group", Name: "system:serviceaccountsx"}, {Kind: "Group", Name: "kcp-admin"},
	}
	bots := []rbacv1.Subject{
		{Kind: "ServiceAccount", Name: botWorkspace, Namespace: "default"},
		{Kind: "Group", Name: "system:serviceaccounts"}, {Kind: "Group", Name: "system:serviceaccounts:default"},
	}
	for _, namespace := range []string{"", "default", "ci"} {
		require.Equal(t, stay, p.AllowedSubjects(namespace, slices.Concat(people, bots, stay)))
		require.Empty(t, p.AllowedSubjects(namespace, slices.Concat(people, bots)))
		require.Empty(t, p.AllowedSubjects(namespace, nil))
	}
	local := []rbacv1.Subject{{Kind: "ServiceAccount", Name: botWorkspace}}
	require.Empty(t, p.AllowedSubjects("default", local), "it is the bot of the namespace of the binding")
	require.Equal(t, local, p.AllowedSubjects("ci", local))
}

func TestForbiddenBinding_isOfKcpsOrTheHubsTenancy(t *testing.T) {
	t.Parallel()
	for export, forbidden := range map[string]bool{
		"tenancy.kcp.io": true, "topology.kcp.io": true, tenancy.ExportTenancy: true, tenancy.ExportAccess: false, "widgets": false,
	} {
		b := &kcpapisv1alpha2.APIBinding{}
		require.False(t, tenancy.ForbiddenBinding(b))
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:any", Name: export}
		require.Equal(t, forbidden, tenancy.ForbiddenBinding(b), export)
	}
}
