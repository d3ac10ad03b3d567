package workspace_test

import (
	"slices"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestRoles_followTheDefinitionsOfTenants(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.ws.Status.Phase, k.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	covers := func() int {
		k.reconcile(t)
		n := 0
		for _, r := range k.roles() {
			if slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "widgets") }) {
				n++
			}
		}
		return n
	}
	require.Zero(t, covers())
	k.ws.Annotations[tenancy.CustomResourcesAnnotation] = "widgets.example.com"
	require.Equal(t, 3, covers())
	delete(k.ws.Annotations, tenancy.CustomResourcesAnnotation)
	require.Zero(t, covers())
}
