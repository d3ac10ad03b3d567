package organization

import (
	"context"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Organizations. followed reports whether kcp has no right of a
// person in the Organization that their living Memberships do not give.
func NewController(d reconciler.Deps, followed func(org, workspace, user string) bool) *controller.Controller {
	bindings := objects.KeptBindings(d.Objects().Bindings, d.Clusters.OrgBindings, d.Views.OrgBindings.InCluster)
	c := d.Controller(controller.Options{Name: "organization", All: reconciler.Keys(d.Views.Organizations.Keys)}, New(configOf(d, bindings, followed)))
	enqueue := func(org string) { c.Enqueue(d.Organization(org)) }
	enqueueCluster := func(cluster string) {
		if org, ok := d.Views.OrgByCluster(cluster); ok {
			enqueue(org.UUID())
		}
	}

	d.Views.Organizations.OnChange(func(o views.Change[*v1alpha1.Organization]) {
		ends := o.Ends(func(o *v1alpha1.Organization) any {
			return []any{
				o.Status.DeletionRequestedAt, o.Spec.DefaultAccess, o.Spec.MembershipChanges, o.Spec.BotChanges, o.Spec.InvitationChanges,
				o.Spec.RequestChanges, o.Spec.Groups,
			}
		})
		reconciler.Enqueue(c, ends)(d.Organization(o.Object().Name))
	})
	d.Views.OrgWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) { enqueue(ws.Object().Name) })
	// An Organization whose spare is thrown away gets another workspace after kcp has removed the spare.
	d.Views.Spares.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if ws.New == nil && ws.Cluster() == d.Clusters.Orgs {
			enqueue(ws.Object().Name)
		}
	})
	d.Views.Initializing.OnChange(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) {
		if lc.New != nil && d.WaitsForHub(lc.New) {
			enqueue(lc.New.Spec.Owner.Name)
		}
	})
	// The children of a soft-deleted Organization are deactivated with it.
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if ws.Added() || ws.Removed() || d.OrgDeactivated(ws.Cluster()) {
			enqueueCluster(ws.Cluster())
		}
	})
	d.Views.Inactive.OnChange(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) {
		if of := d.Views.Cluster(lc.Cluster()); of.OrgUUID != "" {
			enqueue(of.OrgUUID)
		}
	})
	// An Organization without a Membership of its own gets its creator back, and a Membership that has
	// ended by time is removed.
	d.Views.Memberships.Follow(reconciler.Existence, func(m views.Change[*v1alpha1.Membership]) {
		if tenancy.WorkspaceUUID(m.Object()) == "" || m.Object().Spec.ExpiresAt != nil {
			enqueueCluster(m.Cluster())
		}
	})
	// A part of a Membership that has ended by time is removed, too.
	d.Views.Memberships.OnChange(func(m views.Change[*v1alpha1.Membership]) {
		if m.Differs(func(m *v1alpha1.Membership) any { return m.Spec.Extra }) {
			enqueueCluster(m.Cluster())
		}
	})
	// What groups give follows from the groups of people, and from whether they are active. A login that says the same
	// groups concerns only the Organizations in which it moves the end of a part: most logins concern none.
	d.Views.Users.OnChange(func(u views.Change[*v1alpha1.User]) {
		if !u.Differs(reconciler.GroupsOfUser) {
			return
		}
		ends := tenancy.LosesGroup(u.Old.Spec.Groups, u.New.Spec.Groups)
		seen := map[string]bool{}
		for _, hash := range tenancy.ChangedGroups(u.Old, u.New, d.Settings.RightsClock.Now(), d.Settings.GroupMaxAge) {
			for _, org := range d.Views.OrgsMapping(hash) {
				if !seen[org] {
					seen[org] = true
					reconciler.Enqueue(c, ends)(d.Organization(org))
				}
			}
		}
		for _, m := range d.Views.MembershipsOf(u.New.Name) {
			if tenancy.GroupPartDue(m, u.New.Spec.Groups, d.Settings.GroupMaxAge) {
				enqueueCluster(kcp.ClusterOf(m))
			}
		}
	})
	// The removal of an Organization waits for its CatalogEntries.
	d.Views.CatalogEntries.OnChange(func(e views.Change[*v1alpha1.CatalogEntry]) {
		if e.New == nil {
			enqueueCluster(e.Cluster())
		}
	})
	d.Views.OrgBindings.OnChange(func(b views.Change[*kcpapisv1alpha2.APIBinding]) {
		if b.New == nil || !bindings.Right(b.New) {
			enqueueCluster(b.Cluster())
		}
	})
	return c
}

func configOf(d reconciler.Deps, bindings tenancy.Bindings, followed func(org, workspace, user string) bool) Config {
	return Config{
		Objects: d.Objects(), Tree: d.Settings.Tree, Clock: d.Settings.Clock, RightsClock: d.Settings.RightsClock,
		Grace: d.Settings.Deletion, Hold: d.Settings.Hold, PersonalRole: d.Settings.PersonalOrgRole,
		OrgsCluster: d.Clusters.Orgs, Views: d.Views, Followed: followed,
		GroupMaxAge: d.Settings.GroupMaxAge, Places: d.Places, Full: d.Settings.Spares.Full,
		Audit: func(
			action string, reduces bool, cluster string, m *v1alpha1.Membership, before, after v1alpha1.MembershipSpec, write func() error,
		) error {
			return d.AuditedMembership(action, reduces, cluster, m, reconciler.MembershipFacts(before, after), write)
		},
		Clusters: objects.Clusters{Freezer: d.Freezer}, Initializer: d, Kept: bindings,
		Purged: func(ctx context.Context, o *v1alpha1.Organization, counts map[string]int) {
			d.Purged(ctx, audit.Event{Org: o.Name}, counts)
		},
	}
}
