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
	stored, users := d.Objects(), d.Clusters.Users
	return Config{
		Clock: d.Settings.Clock, RightsClock: d.Settings.RightsClock, Grace: d.Settings.Deletion, Hold: d.Settings.Hold, PersonalOrgs: d.Settings.PersonalOrgs,
		Billing: d.Settings.Billing,
		Cache: Cache{
			OrgsCreatedBy: d.Views.OrgsCreatedBy,
			Org:           d.Views.Org,
			SpareIn:       func(org string) string { return spareIn(d, org) },
			OrgIn:         d.Views.OrgByCluster,
			Workspace:     d.Views.Workspace,
			OrgClusters:   func(user string) []string { return orgClusters(d.Views, user) },
			Active: func(name string) bool {
				u, _ := d.Views.ByName(name)
				return tenancy.Active(u)
			},
		},
		Users: Users{
			Get: stored.Users.ByKey,
			Read: func(ctx context.Context, name string) (*v1alpha1.User, error) {
				return stored.Users.Read(ctx, users, name)
			},
			Patch:  stored.Users.Commit,
			Delete: func(ctx context.Context, u *v1alpha1.User) error { return stored.Users.DeleteUnchanged(ctx, users, u) },
		},
		Organizations:   organizationsOf(d),
		Memberships:     membershipsOf(d),
		CreateWorkspace: stored.Workspaces.CreateChild,
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

func organizationsOf(d reconciler.Deps) Organizations {
	stored, orgs := d.Objects().Organizations, d.Clusters.Orgs
	return Organizations{
		Create: func(ctx context.Context, o *v1alpha1.Organization) error { return stored.Create(ctx, orgs, o) },
		Exists: func(ctx context.Context, uuid string) (bool, error) { return stored.Exists(ctx, orgs, uuid) },
		SoftDelete: func(ctx context.Context, org tenancy.Org, lastAdmin string) error {
			requested := map[string]any{"deletionRequestedAt": tenancy.RequestedAt(d.Settings.RequestClock.Now())}
			e := audit.Event{
				ID: rand.Text(), Actor: audit.Actor{Kind: audit.ActorHub}, Action: "delete organization", Org: org.UUID(), Object: lastAdmin,
				Facts: &audit.Facts{Reason: "lastAdminPurged"},
			}
			return d.Audit.Around(e, true, func() error {
				return stored.Merge(ctx, orgs, org.Organization, map[string]any{"status": requested}, "status")
			})
		},
		Delete: func(ctx context.Context, uuid string) (gone bool, err error) {
			o, ok, err := stored.Find(ctx, orgs, uuid)
			if err != nil || !ok {
				return err == nil, err
			}
			if !o.DeletionTimestamp.IsZero() {
				return false, nil
			}
			return false, stored.Delete(ctx, orgs, o)
		},
	}
}

// membershipsOf activates the workspace of a soft-deleted Organization for the time of
// a call.
func membershipsOf(d reconciler.Deps) Memberships {
	memberships := d.Objects().Memberships
	within := func(ctx context.Context, cluster string, do func() error) error {
		return objects.Retryable(d.Freezer.Within(ctx, cluster, func() bool { return d.OrgDeactivated(cluster) }, do))
	}
	return Memberships{
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
