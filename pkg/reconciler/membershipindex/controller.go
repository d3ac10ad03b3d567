package membershipindex

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of UserMembershipIndexes.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{Name: "membershipindex", All: reconciler.Keys(d.Views.IndexKeys)}, New(configOf(d)))
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

func configOf(d reconciler.Deps) Config {
	indexes := d.Clients.Indexes(d.Clusters.Users)
	put := func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error { return objects.Put(ctx, indexes, i) }
	return Config{
		User:               d.Views.ByName,
		IndexedMemberships: d.Views.IndexedMemberships,
		Index: func(user string) (*v1alpha1.UserMembershipIndex, bool) {
			return d.Views.Indexes.Get(d.Clusters.Users, user)
		},
		Create: put,
		Update: put,
		Delete: func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error {
			return objects.Delete(ctx, indexes, i)
		},
	}
}
