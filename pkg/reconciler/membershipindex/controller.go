package membershipindex

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of UserMembershipIndexes.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{Name: "membershipindex", All: reconciler.Keys(d.Views.IndexKeys)}, New(d.Views, d.Objects().Indexes))
	enqueue := func(user string) { c.Enqueue(d.User(user)) }
	members := func(memberships []*v1alpha1.Membership) {
		for _, m := range memberships {
			enqueue(m.Spec.UserRef.Name)
		}
	}
	d.Views.Indexes.OnChange(func(i views.Change[*v1alpha1.UserMembershipIndex]) { enqueue(i.Object().Name) })
	d.OnUserMoved(enqueue)
	d.OnMembershipMoved(func(m *v1alpha1.Membership) {
		enqueue(m.Spec.UserRef.Name)
		// Its members decide who is the first admin of an Organization without a creator, which all
		// rows of it show.
		if org, ok := d.Views.OrgByCluster(kcp.ClusterOf(m)); ok && org.Organization != nil && org.CreatedBy() == "" && tenancy.WorkspaceUUID(m) == "" {
			members(d.Views.MembershipsIn(org.ClusterID))
		}
	})
	d.OnOrgMoved(func(org tenancy.Org) { members(d.Views.MembershipsIn(org.ClusterID)) })
	d.OnWorkspaceMoved(func(ws controller.Key) { members(d.Views.MembershipsAt(ws.Cluster, ws.Name)) })
	return c
}
