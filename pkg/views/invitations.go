package views

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// invitations finds Invitations.
type invitations struct {
	names, addresses *index[string, *v1alpha1.Invitation]
}

func newInvitations() invitations {
	return invitations{
		names: newIndex(func(i *v1alpha1.Invitation) []string { return []string{i.Name} }),
		addresses: newIndex(func(i *v1alpha1.Invitation) []string {
			if i.Spec.Email == "" {
				return nil
			}
			return []string{i.Spec.Email}
		}),
	}
}

func (i invitations) indexes() []indexed[*v1alpha1.Invitation] {
	return []indexed[*v1alpha1.Invitation]{i.names, i.addresses}
}

// Invitation finds an Invitation by name, in all Organizations: the name is random.
func (i invitations) Invitation(name string) (*v1alpha1.Invitation, bool) { return i.names.one(name) }

// InvitationsFor returns the Invitations for an address in lower case, in no order.
func (i invitations) InvitationsFor(email string) []*v1alpha1.Invitation {
	return i.addresses.all(email)
}

// invitationRefs has the Invitation besides the Org: who presents its secret does not name the Org.
func (v *Views) invitationRefs(cluster string, i *v1alpha1.Invitation) []tenancy.Ref {
	return append(v.clusterRefs(cluster), tenancy.InvitationRef(i.Name))
}

// InvitationsIn returns the Invitations of the Organization whose own workspace is in the logical
// cluster, in no order.
func (v *Views) InvitationsIn(orgCluster string) []*v1alpha1.Invitation {
	return v.Invitations.InCluster(orgCluster)
}

// OrgOfInvitation finds the Organization that an Invitation belongs to.
func (v *Views) OrgOfInvitation(i *v1alpha1.Invitation) (tenancy.Org, bool) {
	return v.OrgByCluster(kcp.ClusterOf(i))
}
