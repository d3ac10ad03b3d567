package organization

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Organizations.
func NewController(d reconciler.Deps) *controller.Controller {
	bindings := objects.KeptBindings(d.Objects().Bindings, d.Clusters.OrgBindings, d.Views.OrgBindings.InCluster)
	c := d.Controller(controller.Options{Name: "organization", All: reconciler.Keys(d.Views.Organizations.Keys)}, New(configOf(d, bindings)))
	enqueue := func(org string) { c.Enqueue(d.Organization(org)) }
	enqueueCluster := func(cluster string) {
		if org, ok := d.Views.OrgByCluster(cluster); ok {
			enqueue(org.UUID())
		}
	}

	d.Views.Organizations.OnChange(func(o views.Change[*v1alpha1.Organization]) {
		ends := o.Ends(func(o *v1alpha1.Organization) any {
			return []any{o.Status.DeletionRequestedAt, o.Spec.DefaultAccess, o.Spec.MembershipChanges, o.Spec.BotChanges}
		})
		reconciler.Enqueue(c, ends)(d.Organization(o.Object().Name))
	})
	d.Views.OrgWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) { enqueue(ws.Object().Name) })
	d.Views.Initializing.OnChange(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) {
		if lc.New != nil && waitsForHub(d.Clusters, lc.New) {
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
	// An Organization without a Membership of its own gets its creator back.
	d.Views.Memberships.Follow(reconciler.Existence, func(m views.Change[*v1alpha1.Membership]) {
		if tenancy.WorkspaceUUID(m.Object()) == "" {
			enqueueCluster(m.Cluster())
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

func configOf(d reconciler.Deps, bindings tenancy.Bindings) Config {
	stored, orgs := d.Objects(), d.Clusters.Orgs
	memberships := stored.Memberships
	return Config{
		Tree: d.Settings.Tree, Clock: d.Settings.Clock, Grace: d.Settings.DeletionGrace,
		PersonalRole: d.Settings.PersonalOrgRole, OrgsCluster: d.Clusters.Orgs,
		Cache: Cache{
			Workspace: func(org string) (*kcptenancyv1alpha1.Workspace, bool) {
				return stored.Workspaces.Get(orgs, org)
			},
			Initializing: func(org string) (string, bool) { return initializingCluster(d, org) },
			Memberships:  d.Views.MembershipsIn,
			Children:     d.Views.Workspaces,
			User:         d.Views.ByName,
		},
		Organizations: Organizations{
			Get: stored.Organizations.ByKey,
			Read: func(ctx context.Context, org string) (*v1alpha1.Organization, error) {
				return stored.Organizations.Read(ctx, orgs, org)
			},
			Patch: stored.Organizations.Commit,
			Delete: func(ctx context.Context, o *v1alpha1.Organization) error {
				return stored.Organizations.DeleteUnchanged(ctx, orgs, o)
			},
		},
		Workspaces: workspacesOf(d),
		Memberships: Memberships{
			List: memberships.List, Create: memberships.Create, Delete: memberships.DeleteUnchanged,
			Add: func(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
				return d.AuditedMembership("add member", false, cluster, m, m.Spec.Role, func() error { return memberships.Create(ctx, cluster, m) })
			},
			Remove: func(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
				return d.AuditedMembership("remove member", true, cluster, m, "", func() error { return memberships.DeleteUnchanged(ctx, cluster, m) })
			},
			Set: func(ctx context.Context, cluster string, m *v1alpha1.Membership, c v1alpha1.MembershipChange) error {
				action, reduces := "change member", tenancy.ReducesMembership(m, c)
				if reduces && c.Role != m.Spec.Role {
					action = "demote member"
				}
				return d.AuditedMembership(action, reduces, cluster, m, c.Role, func() error { return memberships.Set(ctx, cluster, m, c) })
			},
		},
		ChangeBot: stored.Bots.Change,
		RemoveEntries: func(ctx context.Context, cluster string) (left int, err error) {
			err = stored.Entries.Each(ctx, cluster, "", func(e *v1alpha1.CatalogEntry) error {
				left++
				if !e.DeletionTimestamp.IsZero() {
					return nil
				}
				return stored.Entries.Delete(ctx, cluster, e)
			})
			return left, err
		},
		Clusters: Clusters{
			Deactivate:  objects.Clusters{Freezer: d.Freezer}.Deactivate,
			Activate:    objects.Clusters{Freezer: d.Freezer}.Activate,
			Deactivated: d.Freezer.Deactivated,
			Initialize:  func(ctx context.Context, org, cluster string) error { return initialize(ctx, d, org, cluster) },
		},
		Bindings: bindings,
		Purged: func(ctx context.Context, o *v1alpha1.Organization, counts map[string]int) {
			d.Purged(ctx, audit.Event{Org: o.Name}, counts)
		},
	}
}

func workspacesOf(d reconciler.Deps) Workspaces {
	stored, orgs := d.Objects().Workspaces, d.Clusters.Orgs
	return Workspaces{
		Create: func(ctx context.Context, ws *kcptenancyv1alpha1.Workspace) error { return stored.Create(ctx, orgs, ws) },
		Own: func(ctx context.Context, org string) (*kcptenancyv1alpha1.Workspace, bool, error) {
			return stored.Find(ctx, orgs, org)
		},
		CreateChild: stored.CreateChild,
		ChildExists: stored.Exists,
		List:        stored.List,
		Delete: func(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error {
			if err := stored.Delete(ctx, cluster, ws); err != nil || ws.Spec.Cluster == "" {
				return err
			}
			return objects.Clusters{Freezer: d.Freezer}.ActivateForDeletion(ctx, ws.Spec.Cluster)
		},
	}
}

// waitsForHub reports whether the logical cluster belongs to an Organization and the
// hub's initializer is the only one left.
func waitsForHub(c bootstrap.Clusters, lc *kcpcorev1alpha1.LogicalCluster) bool {
	return lc.Spec.Owner != nil && lc.Spec.Owner.Cluster == c.Orgs &&
		slices.Equal(lc.Status.Initializers, []kcpcorev1alpha1.LogicalClusterInitializer{kcpcorev1alpha1.LogicalClusterInitializer(c.Initializer)})
}

// initializingCluster finds the logical cluster of an Organization that waits for the
// hub. Only a few are initializing at any time.
func initializingCluster(d reconciler.Deps, org string) (cluster string, ok bool) {
	for lc := range d.Views.Initializing.All() {
		if waitsForHub(d.Clusters, lc) && lc.Spec.Owner.Name == org {
			return kcp.ClusterOf(lc), true
		}
	}
	return "", false
}

// initialize removes the hub's initializer from an Organization's logical cluster, on
// the shard that has it.
func initialize(ctx context.Context, d reconciler.Deps, org, cluster string) error {
	const field = "/status/initializers"
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": field, "value": []string{d.Clusters.Initializer}},
		{"op": "replace", "path": field, "value": []string{}},
	})
	if err != nil {
		return err
	}
	var last error
	for _, url := range d.Initializing() {
		_, err := d.Clients.LogicalClusters(url+"/clusters/"+cluster).Patch(ctx, kcpcorev1alpha1.LogicalClusterName, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
		switch {
		case err == nil:
			return touch(ctx, d, org)
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			// Another shard has it, or it is initialized already.
			last = cmp.Or(last, fmt.Errorf("%w: %w", controller.ErrRetry, err))
		default:
			// This shard may be down and another one have it.
			last = err
		}
	}
	return last
}

// touch changes an Organization's kcp Workspace so that kcp looks at its logical cluster
// at once. By itself kcp (0.32) polls with a delay of a fifth of the Workspace's age.
func touch(ctx context.Context, d reconciler.Deps, org string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.InitializedAnnotation: "true"}}})
	if err != nil {
		return err
	}
	_, err = d.Clients.Workspaces(d.Clusters.Orgs).Patch(ctx, org, types.MergePatchType, patch, metav1.PatchOptions{})
	return objects.Retryable(err)
}
