package tenancy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// added returns the rules of a role for custom resources.
func added(t *testing.T, role int, names ...string) []rbacv1.PolicyRule {
	t.Helper()
	with, without := tenancy.ClusterRoles(nil, names...)[role], tenancy.ClusterRoles(nil)[role]
	var rules []rbacv1.PolicyRule
	for _, r := range with.Rules {
		if !slices.ContainsFunc(without.Rules, func(o rbacv1.PolicyRule) bool { return fmt.Sprint(o) == fmt.Sprint(r) }) {
			rules = append(rules, r)
		}
	}
	require.Len(t, with.Rules, len(without.Rules)+len(rules), "nothing else changes")
	return rules
}

func TestCustomRules_listResourcesByName(t *testing.T) {
	t.Parallel()
	read := []string{"get", "list", "watch"}
	write := append(slices.Clone(read), "create", "update", "patch", "delete", "deletecollection")
	for role, verbs := range map[int][]string{0: write, 1: write, 2: read} {
		rules := added(t, role, "widgets.example.com", "a.other.io", "gadgets.example.com", "widgets.example.com", "gateways.gateway.networking.k8s.io")
		require.Equal(t, []rbacv1.PolicyRule{
			{Verbs: verbs, APIGroups: []string{"example.com"}, Resources: []string{"gadgets", "gadgets/scale", "gadgets/status", "widgets", "widgets/scale", "widgets/status"}},
			{Verbs: verbs, APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gateways", "gateways/scale", "gateways/status"}},
			{Verbs: verbs, APIGroups: []string{"other.io"}, Resources: []string{"a", "a/scale", "a/status"}},
		}, rules)
	}
}

// kcp accepts all of these from a Workspace admin except the malformed ones.
func TestCustomRules_skipReservedGroups(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, added(t, 0, "logicalclusters.example.com"))
	for _, name := range []string{
		"logicalclusters.core.kcp.io", "apibindings.apis.kcp.io", "workspaces.tenancy.kcp.io", "partitions.topology.kcp.io", "x.kcp.io",
		"memberships.tenancy.kedge.faros.sh", "x.access.kedge.faros.sh", "x.kedge.faros.sh",
		"roles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "certificatesigningrequests.certificates.k8s.io",
		"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io", "serviceaccounts.core",
		"", ".", "*", "*.*", "*.example.com", "widgets.*", "widgets", "widgets.", ".example.com", "widgets..com",
		"Widgets.example.com", "widgets/status.example.com", "widgets.example.com ", "widgets.example.com,*.*", "-a.example.com", "widgets.example.com\n",
		strings.Repeat("a", 64) + ".example.com", "widgets." + strings.Repeat("a.", 123) + "com",
	} {
		for role := range 3 {
			require.Empty(t, added(t, role, name), "%q", name)
		}
		require.Empty(t, tenancy.EncodeCustomResources([]string{name}), "%q", name)
	}
}

func TestEncodeCustomResources_isBounded(t *testing.T) {
	t.Parallel()
	require.Empty(t, tenancy.EncodeCustomResources(nil))
	require.Empty(t, tenancy.DecodeCustomResources(""))
	require.Equal(t, "a.example.com,b.example.com", tenancy.EncodeCustomResources([]string{"b.example.com", "roles.rbac.authorization.k8s.io", "a.example.com", "b.example.com"}))

	var usual, longest []string
	for i := range tenancy.MaxCustomResources {
		usual = append(usual, fmt.Sprintf("virtualnetworkgateways%03d.network.azure.upbound.io", i))
		name := fmt.Sprintf("a%03d.", i)
		longest = append(longest, name+strings.Repeat("b", 253-len(name)))
	}
	require.Equal(t, usual, tenancy.DecodeCustomResources(tenancy.EncodeCustomResources(usual)))
	raw := tenancy.EncodeCustomResources(longest)
	kept := tenancy.DecodeCustomResources(raw)
	require.LessOrEqual(t, len(raw), 64<<10)
	require.Equal(t, longest[:len(kept)], kept, "the first of them, whole")
	require.Greater(t, len(kept), 200)
	// kcp refuses objects larger than 1.5 MB.
	for _, names := range [][]string{usual, kept} {
		for _, r := range tenancy.ClusterRoles(nil, names...) {
			require.Less(t, r.Size(), 300<<10, r.Name)
		}
	}
}
