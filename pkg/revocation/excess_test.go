package revocation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestExcess_namesBindingsThatGiveABotMore(t *testing.T) {
	t.Parallel()
	const bot = "11111111-1111-4111-8111-111111111111"
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: bot, Namespace: "default"}
	readers, secrets := tenants("readers", reading("", "configmaps")), tenants("tokens", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}})
	left := tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: v1alpha1.RoleMember}
	for name, c := range map[string]struct {
		role     string
		subjects []rbacv1.Subject
		more     bool
	}{
		"the admin role":            {tenancy.ClusterRoleAdmin, []rbacv1.Subject{account}, true},
		"a role of a tenant":        {"tokens", []rbacv1.Subject{account}, true},
		"by its group":              {"tokens", []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts"}}, true},
		"by that of its namespace":  {"tokens", []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:default"}}, true},
		"by that of everybody":      {"tokens", []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}, true},
		"as a User":                 {"tokens", []rbacv1.Subject{{Kind: "User", Name: tenancy.BotUsername(bot)}}, true},
		"beside another":            {"tokens", []rbacv1.Subject{{Kind: "User", Name: "bob"}, account}, true},
		"no more than its role":     {"readers", []rbacv1.Subject{account}, false},
		"its own role":              {tenancy.ClusterRoleMember, []rbacv1.Subject{account}, false},
		"to another account":        {"tokens", []rbacv1.Subject{{Kind: "ServiceAccount", Name: "mine", Namespace: "default"}}, false},
		"to one in another place":   {"tokens", []rbacv1.Subject{{Kind: "ServiceAccount", Name: bot, Namespace: "ci"}}, false},
		"to a group of other names": {"tokens", []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:ci"}}, false},
		"a role that is not there":  {"missing", []rbacv1.Subject{account}, false},
		"too large to be compared":  {"large", []rbacv1.Subject{account}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, server := reviews(t, &authorizer{}, readers, secrets, large())
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.role}
			server.Put(cluster, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Subjects: c.subjects, RoleRef: ref})
			server.Put(cluster, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "y", Namespace: "default"}, Subjects: c.subjects, RoleRef: ref})
			hubs := tenancy.BotBinding(tenancy.NewBot(bot, "w", "CI", v1alpha1.RoleAdmin, "alice", ""), "uid")
			server.Put(cluster, hubs)
			names, err := k.Excess(t.Context(), bot, left)
			require.NoError(t, err)
			if c.more {
				require.Equal(t, []string{"ClusterRoleBinding x", "RoleBinding default/y"}, names)
			} else {
				require.Empty(t, names)
			}
		})
	}
}

func TestExcess_takesTheNamespaceOfTheBinding(t *testing.T) {
	t.Parallel()
	const bot = "11111111-1111-4111-8111-111111111111"
	k, server := reviews(t, &authorizer{}, tenants("tokens", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}}))
	for _, namespace := range []string{"default", "ci"} {
		server.Put(cluster, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "local", Namespace: namespace}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: bot}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tokens"},
		})
	}
	names, err := k.Excess(t.Context(), bot, tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: v1alpha1.RoleMember})
	require.NoError(t, err)
	require.Equal(t, []string{"RoleBinding default/local"}, names)
}
