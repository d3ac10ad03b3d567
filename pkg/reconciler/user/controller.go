package user

import (
	"context"
	"crypto/rand"
	"slices"

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

// NewController returns the controller of Users.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{Name: "user", All: reconciler.Keys(d.Views.Users.Keys)}, New(configOf(d)))
	enqueue := func(name string) {
		if name != "" {
			c.Enqueue(d.User(name))
		}
	}
	d.Views.Users.OnChange(func(u views.Change[*v1alpha1.User]) {
		ends := u.Ends(func(u *v1alpha1.User) any { return []any{u.Status.DeletionRequestedAt, u.Spec.Registration} })
		reconciler.Enqueue(c, ends)(d.User(u.Object().Name))
	})
	// The quota of the creator changes with the number of Organizations; sign-up waits for
	// a personal one to become Ready.
	signUp := func(o *v1alpha1.Organization) any { return []any{o.Status.Phase, o.Status.DeletionRequestedAt} }
	d.Views.Organizations.Follow(signUp, func(o views.Change[*v1alpha1.Organization]) {
		if o.Added() || o.Removed() || o.Object().Spec.Personal {
			enqueue(o.Object().Annotations[v1alpha1.CreatedByAnnotation])
		}
	})
	// Sign-up waits for the default Workspace to become Ready.
	ready := func(ws *kcptenancyv1alpha1.Workspace) any {
		return []any{ws.Spec.Cluster, tenancy.WorkspaceOf("", ws).Ready()}
	}
	d.Views.ChildWorkspaces.Follow(ready, func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if org, ok := d.Views.OrgByCluster(ws.Cluster()); ok && org.Organization != nil && org.Spec.Personal {
			enqueue(org.CreatedBy())
		}
	})
	return c
}

func configOf(d reconciler.Deps) Config {
	stored := d.Objects()
	return Config{
		Objects: stored, Clock: d.Settings.Clock, RightsClock: d.Settings.RightsClock, Grace: d.Settings.Deletion, Hold: d.Settings.Hold,
		Replaying: d.Settings.Replaying, PersonalOrgs: d.Settings.PersonalOrgs, Billing: d.Settings.Billing,
		UsersCluster: d.Clusters.Users, OrgsCluster: d.Clusters.Orgs,
		Views: d.Views, SpareIn: func(org string) string { return spareIn(d, org) }, Held: heldOf(d, stored.Memberships),
		SoftDelete: func(ctx context.Context, org tenancy.Org, lastAdmin string) error {
			requested := map[string]any{"deletionRequestedAt": tenancy.RequestedAt(d.Settings.RequestClock.Now())}
			e := audit.Event{
				ID: rand.Text(), Actor: audit.Actor{Kind: audit.ActorHub}, Action: "delete organization", Org: org.UUID(), Object: lastAdmin,
				Facts: &audit.Facts{Reason: "lastAdminPurged"},
			}
			return d.Audit.Around(e, true, func() error {
				return stored.Organizations.Merge(ctx, d.Clusters.Orgs, org.Organization, map[string]any{"status": requested}, "status")
			})
		},
		Purged: func(ctx context.Context, u *v1alpha1.User, counts map[string]int) {
			d.Purged(ctx, audit.Event{Object: u.Name}, counts)
		},
	}
}

// spareIn finds the Workspace in a spare Organization.
func spareIn(d reconciler.Deps, org string) string {
	ws, ok := d.Views.OrgWorkspaces.Get(d.Clusters.Orgs, org)
	if !ok || ws.Spec.Cluster == "" {
		return ""
	}
	for _, spare := range d.Views.SparesIn(ws.Spec.Cluster) {
		if !spare.Terminating && spare.Reserved == nil {
			return spare.Name
		}
	}
	return ""
}

// orgClusters returns the logical clusters of the Organizations in which a User has
// Memberships.
func orgClusters(v *views.Views, user string) (clusters []string) {
	for _, m := range v.MembershipsOf(user) {
		if cluster := kcp.ClusterOf(m); !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// heldOf activates the workspace of a soft-deleted Organization for the time of a call.
func heldOf(d reconciler.Deps, memberships objects.Memberships) Held {
	within := func(ctx context.Context, cluster string, do func() error) error {
		return objects.Retryable(d.Freezer.Within(ctx, cluster, func() bool { return d.OrgDeactivated(cluster) }, do))
	}
	return Held{
		Clusters: func(user string) []string { return orgClusters(d.Views, user) },
		List: func(ctx context.Context, cluster string) (list []*v1alpha1.Membership, err error) {
			err = within(ctx, cluster, func() error {
				list, err = memberships.List(ctx, cluster)
				return err
			})
			return list, err
		},
		Promote: func(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
			facts := audit.Facts{Role: string(v1alpha1.RoleAdmin)}
			if m.Spec.ExpiresAt != nil {
				facts.ExpiresAt = tenancy.ExpiryText(nil)
			}
			return d.AuditedMembership("promote", false, cluster, m, facts, func() error {
				return within(ctx, cluster, func() error { return memberships.Promote(ctx, cluster, m) })
			})
		},
		Delete: func(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
			return within(ctx, cluster, func() error { return memberships.DeleteUnchanged(ctx, cluster, m) })
		},
	}
}
