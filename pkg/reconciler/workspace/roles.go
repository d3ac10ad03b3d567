package workspace

import (
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// RolesCache reads from the views what the ClusterRoles of a logical cluster follow from.
type RolesCache struct {
	Bindings func(cluster string) []*kcpapisv1alpha2.APIBinding
	// MemberResources are the resources of the API of a binding that members may write; none
	// means all.
	MemberResources func(cluster string, b *kcpapisv1alpha2.APIBinding) []string
	ClusterRoles    func(cluster string) []*rbacv1.ClusterRole
}

// of returns the ClusterRoles that a Workspace has and those that it is to have, of the same names.
func (c RolesCache) of(ws *kcptenancyv1alpha1.Workspace) (held, wanted []tenancy.RBAC) {
	cluster := ws.Spec.Cluster
	names := map[string]bool{}
	bound := tenancy.BoundResources(c.Bindings(cluster), func(b *kcpapisv1alpha2.APIBinding) []string { return c.MemberResources(cluster, b) })
	custom := tenancy.DecodeCustomResources(ws.Annotations[tenancy.CustomResourcesAnnotation])
	for _, want := range tenancy.ClusterRoles(bound, custom...) {
		names[want.Name] = true
		wanted = append(wanted, want)
	}
	for _, have := range c.ClusterRoles(cluster) {
		if names[have.Name] {
			held = append(held, have)
		}
	}
	return held, wanted
}
