package catalogentry

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewControllers returns the controller of CatalogEntries and the one that probes the servers of
// providers.
func NewControllers(d reconciler.Deps) []*controller.Controller {
	servers := &probes{
		get: d.Views.CatalogEntry, probe: d.ProbeBackend, clock: clock.RealClock{},
		known: map[controller.Key]string{}, places: map[string]*load{},
	}
	prober := d.Controller(controller.Options{
		Name: "catalogbackend", Workers: proberWorkers, All: reconciler.Keys(d.Views.CatalogEntryKeys),
	}, servers.reconcile)
	entries := d.Controller(controller.Options{Name: "catalogentry", All: func() []controller.Key {
		return append(reconciler.Keys(d.Views.CatalogEntryKeys)(), granted(d)...)
	}}, New(configOf(d, servers, prober.Enqueue)))
	servers.onChange(entries.Enqueue)
	subscribe(d, entries, prober)
	return []*controller.Controller{entries, prober}
}

func subscribe(d reconciler.Deps, entries, prober *controller.Controller) {
	ofOrg := func(org tenancy.Org) {
		for _, e := range d.Views.CatalogEntriesOf(org.UUID()) {
			entries.Enqueue(controller.Key{Cluster: org.ClusterID, Name: e.Name})
		}
	}
	inCluster := func(cluster string) {
		if org, ok := d.Views.OrgByCluster(cluster); ok && org.Organization != nil {
			ofOrg(org)
		}
	}
	// published are the entries in a logical cluster that a person published.
	published := func(cluster, user string) {
		if org, ok := d.Views.OrgByCluster(cluster); ok && org.Organization != nil {
			for _, e := range d.Views.CatalogEntriesOf(org.UUID()) {
				if tenancy.IsPublisher(e, user) {
					entries.Enqueue(controller.Key{Cluster: cluster, Name: e.Name})
				}
			}
		}
	}
	d.Views.CatalogEntries.OnChange(func(e views.Change[*v1alpha1.CatalogEntry]) {
		key := controller.Key{Cluster: e.Cluster(), Name: e.Object().Name}
		entries.Enqueue(key)
		if e.Added() || e.Removed() || e.Differs(probedFields) {
			prober.Enqueue(key)
		}
		// Another entry may have the slug now, or not clash any more.
		if e.Added() || e.Removed() || e.Terminating() {
			for _, other := range d.Views.CatalogKeysOfSlug(e.Cluster(), e.Object().Spec.Slug) {
				entries.Enqueue(controller.Key(other))
			}
		}
	})
	// The prober follows entries alone: a change of an Organization sends no request to a server. An
	// entry that no probe was made of asks for one by itself.
	d.OnOrgMoved(publication, ofOrg)
	d.OnWorkspaceMoved(reconciler.WorkspaceState, func(ws controller.Key) {
		inCluster(ws.Cluster)
		// Grants of entries that were deleted while the Workspace took no writes.
		if found, ok := d.Views.ChildWorkspaces.Get(ws.Cluster, ws.Name); ok && found.Spec.Cluster != "" {
			for _, b := range d.Views.ClusterRoleBindings.InCluster(found.Spec.Cluster) {
				enqueueGrant(entries, b.Name)
			}
		}
	})
	d.Views.Memberships.Follow(reconciler.RoleOfMembership, func(m views.Change[*v1alpha1.Membership]) {
		if isAdmin(m.Old) || isAdmin(m.New) {
			inCluster(m.Cluster())
		} else {
			published(m.Cluster(), m.Object().Spec.UserRef.Name)
		}
	})
	d.OnUserMoved(reconciler.RightsOfUser, func(name string) {
		for _, m := range d.Views.MembershipsOf(name) {
			if isAdmin(m) {
				inCluster(kcp.ClusterOf(m))
			} else {
				published(kcp.ClusterOf(m), name)
			}
		}
	})
	d.Views.Bots.OnChange(func(b views.Change[*v1alpha1.Bot]) {
		if b.Moved(func(b *v1alpha1.Bot) any { return []any{b.Spec.Role, b.Status.AuthorizedRole} }) {
			inCluster(b.Cluster())
		}
	})
	d.Views.ClusterRoles.OnChange(func(r views.Change[*rbacv1.ClusterRole]) { enqueueGrant(entries, r.Object().Name) })
	d.Views.ClusterRoleBindings.OnChange(func(b views.Change[*rbacv1.ClusterRoleBinding]) { enqueueGrant(entries, b.Object().Name) })
}

// publication are the fields of an Organization that decide who may publish and bind.
func publication(o *v1alpha1.Organization) any {
	return []any{o.Spec.CatalogEntryCreation, o.Spec.Personal, o.Status.DeletionRequestedAt}
}

// probedFields are the spec without what the server of a provider has nothing to do with.
func probedFields(e *v1alpha1.CatalogEntry) any {
	spec := e.Spec
	spec.DisplayName, spec.MemberResources = "", nil
	return spec
}

func isAdmin(m *v1alpha1.Membership) bool {
	return m != nil && tenancy.HighestRole(m).AtLeast(v1alpha1.RoleAdmin)
}

func enqueueGrant(entries *controller.Controller, name string) {
	if cluster, entry, ok := tenancy.ParseCatalogGrantName(name); ok {
		entries.Enqueue(controller.Key{Cluster: cluster, Name: entry})
	}
}

// granted returns the keys of all entries that have a grant in a child Workspace, whether they
// exist or not.
func granted(d reconciler.Deps) (keys []controller.Key) {
	for b := range d.Views.ClusterRoleBindings.All() {
		if cluster, entry, ok := tenancy.ParseCatalogGrantName(b.Name); ok {
			keys = append(keys, controller.Key{Cluster: cluster, Name: entry})
		}
	}
	return keys
}

func configOf(d reconciler.Deps, servers *probes, probe func(controller.Key)) Config {
	return Config{
		Objects: d.Objects(), Exports: objects.Of("apiexports", d.Clients.APIExports, nil),
		Tree: d.Settings.Tree, Clock: d.Settings.Clock, ProvidersCluster: d.Clusters.Providers, Views: d.Views,
		Probes: servers, Probe: probe,
	}
}
