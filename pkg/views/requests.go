package views

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// AccessRequest finds an AccessRequest of the Organization whose own workspace is in the logical cluster.
func (v *Views) AccessRequest(orgCluster, name string) (*v1alpha1.AccessRequest, bool) {
	return v.AccessRequests.Get(orgCluster, name)
}

// AccessRequestsIn returns the AccessRequests of an Organization, in no order.
func (v *Views) AccessRequestsIn(orgCluster string) []*v1alpha1.AccessRequest {
	return v.AccessRequests.InCluster(orgCluster)
}

// SudoRequest returns the ID of the AccessRequest by which a User has sudo in a Workspace of the Org, or
// nothing if an admin gave it to them.
func (v *Views) SudoRequest(user, org, workspace string) string {
	o, ok := v.Org(org)
	if !ok {
		return ""
	}
	m, ok := v.Membership(o.ClusterID, tenancy.MembershipName(user, workspace))
	if !ok || tenancy.HandOf(m).Sudo {
		return ""
	}
	for _, x := range tenancy.ExtrasOf(m) {
		if id, ok := tenancy.RequestOf(x.Source); ok && x.Sudo {
			return id
		}
	}
	return ""
}
