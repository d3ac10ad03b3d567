package membershipindex

import (
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

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
	// All keys are in one logical cluster: those that follow from a change in an Organization wait in its line.
	enqueue := func(m *v1alpha1.Membership, ends bool) {
		c.EnqueueFor(kcp.ClusterOf(m), d.User(m.Spec.UserRef.Name), ends)
	}
	members := func(memberships []*v1alpha1.Membership) {
		for _, m := range memberships {
			enqueue(m, false)
		}
	}
	own := func(user string) { c.EnqueueFor("user "+user, d.User(user), false) }
	d.Views.Indexes.OnChange(func(i views.Change[*v1alpha1.UserMembershipIndex]) { own(i.Object().Name) })
	d.OnUserMoved(reconciler.Existence, own)
	d.Views.Memberships.Follow(reconciler.RoleOfMembership, func(c views.Change[*v1alpha1.Membership]) {
		m := c.Object()
		enqueue(m, c.Ends(reconciler.RoleOfMembership))
		// Its members decide who is the first admin of an Organization without a creator, which all
		// rows of it show.
		if org, ok := d.Views.OrgByCluster(kcp.ClusterOf(m)); ok && org.Organization != nil && org.CreatedBy() == "" && tenancy.WorkspaceUUID(m) == "" {
			members(d.Views.MembershipsIn(org.ClusterID))
		}
	})
	d.OnOrgMoved(indexedOfOrg, func(org tenancy.Org) { members(d.Views.MembershipsIn(org.ClusterID)) })
	d.OnWorkspaceMoved(indexedOfWorkspace, func(ws controller.Key) { members(d.Views.MembershipsAt(ws.Cluster, ws.Name)) })
	return c
}

// indexedOfOrg are the fields of an Organization that the rows about it show.
func indexedOfOrg(o *v1alpha1.Organization) any {
	return []any{o.Spec.DisplayName, o.Spec.Personal, o.Annotations[v1alpha1.CreatedByAnnotation], o.Status.DeletionRequestedAt}
}

// indexedOfWorkspace are the fields of a Workspace that the rows about it show.
func indexedOfWorkspace(ws *kcptenancyv1alpha1.Workspace) any {
	return []any{ws.Annotations[v1alpha1.DisplayNameAnnotation], ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation], ws.Spec.Cluster}
}
