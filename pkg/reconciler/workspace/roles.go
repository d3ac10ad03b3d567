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

// missing returns the ClusterRoles of a Workspace that are not as desired, with the versions
// that they replace, or all of them if forced.
func (c RolesCache) missing(ws *kcptenancyv1alpha1.Workspace, forced bool) (write []*rbacv1.ClusterRole) {
	cluster := ws.Spec.Cluster
	held := map[string]*rbacv1.ClusterRole{}
	for _, r := range c.ClusterRoles(cluster) {
		held[r.Name] = r
	}
	bound := tenancy.BoundResources(c.Bindings(cluster), func(b *kcpapisv1alpha2.APIBinding) []string { return c.MemberResources(cluster, b) })
	custom := tenancy.DecodeCustomResources(ws.Annotations[tenancy.CustomResourcesAnnotation])
	for _, want := range tenancy.ClusterRoles(bound, custom...) {
		have := held[want.Name]
		if have != nil && tenancy.SameRBAC(have, want) && !forced {
			continue
		}
		if have != nil {
			want.ResourceVersion = have.ResourceVersion
		}
		write = append(write, want)
	}
	return write
}
