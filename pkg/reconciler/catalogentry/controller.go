package catalogentry

import (
	"context"
	"slices"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		get: entriesOf(d).Get, probe: d.ProbeBackend, clock: clock.RealClock{}, known: map[controller.Key]string{}, places: map[string]*load{},
	}
	prober := d.Controller(controller.Options{
		Name: "catalogbackend", Workers: proberWorkers, All: reconciler.Keys(d.Views.CatalogEntryKeys),
	}, servers.reconcile)
	entries := d.Controller(controller.Options{Name: "catalogentry", All: func() []controller.Key {
		return append(reconciler.Keys(d.Views.CatalogEntryKeys)(), granted(d)...)
	}}, New(Config{
		Tree: d.Settings.Tree, Clock: d.Settings.Clock, Entries: entriesOf(d), Cache: cacheOf(d),
		FindExport: func(ctx context.Context, at, name string) (*kcpapisv1alpha2.APIExport, Absence, error) {
			return findExport(ctx, d, at, name)
		},
		Rights: rightsOf(d), Grants: grantsOf(d),
		Probes: Probes{Last: servers.last, Begin: prober.Enqueue},
	}))
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

func entriesOf(d reconciler.Deps) Entries {
	return Entries{
		Get: func(key controller.Key) (*v1alpha1.CatalogEntry, bool) {
			return d.Views.CatalogEntry(key.Cluster, key.Name)
		},
		Patch: d.Objects().Entries.Commit,
	}
}

func cacheOf(d reconciler.Deps) Cache {
	return Cache{
		Organization: func(cluster string) (_ *tenancy.Org, inGrace, ok bool) {
			if cluster == d.Clusters.Providers {
				return nil, false, true
			}
			org, ok := d.Views.OrgByCluster(cluster)
			if !ok || org.Organization == nil {
				return nil, false, false
			}
			return &org, d.OrgDeactivated(cluster), true
		},
		Workspace: d.Views.Workspace,
		Clash:     d.Views.CatalogClash,
		Audience: func(org tenancy.Org) []rbacv1.Subject {
			return tenancy.OrgAudience(org, d.Views.Workspaces(org.UUID()), d.Views.MembershipsIn(org.ClusterID), d.Views.Bots.InCluster(org.ClusterID), d.Views.ByName)
		},
		Granted: func(key controller.Key) (clusters []string) {
			org, ok := d.Views.OrgByCluster(key.Cluster)
			if !ok || org.Organization == nil {
				return nil
			}
			name := tenancy.CatalogGrantName(key.Cluster, key.Name)
			for _, ws := range d.Views.Workspaces(org.UUID()) {
				_, role := d.Views.ClusterRoles.Get(ws.ClusterID, name)
				_, binding := d.Views.ClusterRoleBindings.Get(ws.ClusterID, name)
				if (role || binding) && !org.Deleted() && !ws.Deleted() && ws.KCPReady {
					clusters = append(clusters, ws.ClusterID)
				}
			}
			return clusters
		},
	}
}

// findExport reads an APIExport from kcp and says why there is none.
func findExport(ctx context.Context, d reconciler.Deps, at, name string) (*kcpapisv1alpha2.APIExport, Absence, error) {
	export, err := d.Clients.APIExports(at).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return export, "", nil
	case apierrors.IsForbidden(err):
		return nil, WorkspaceInactive, nil
	case !apierrors.IsNotFound(err):
		return nil, "", err
	}
	gone, err := workspaceGone(ctx, d, at, err)
	switch {
	case err != nil:
		return nil, "", err
	case gone:
		return nil, WorkspaceGone, nil
	}
	return nil, ExportGone, nil
}

// workspaceGone reports whether a NotFound is about the workspace of a path and not about an
// object in it. While kcp starts it knows no paths and answers NotFound for all. Therefore the
// workspaces on the path are read from the logical cluster of the providers downwards; if they
// exist, the error is controller.ErrRetry.
func workspaceGone(ctx context.Context, d reconciler.Deps, path string, notFound error) (bool, error) {
	below, ok := strings.CutPrefix(path, d.Settings.Tree.Providers()+":")
	status, isStatus := notFound.(apierrors.APIStatus)
	if !ok || !isStatus || status.Status().Details == nil || status.Status().Details.Kind != "workspaces" {
		return false, nil
	}
	workspaces := objects.Of("workspaces", d.Clients.Workspaces, nil)
	cluster := d.Clusters.Providers
	for _, name := range strings.Split(below, ":") {
		ws, ok, err := workspaces.Find(ctx, cluster, name)
		if err != nil || !ok {
			return err == nil, err
		}
		if cluster = ws.Spec.Cluster; cluster == "" {
			return false, controller.ErrRetry
		}
	}
	return false, controller.ErrRetry
}

func rightsOf(d reconciler.Deps) Rights {
	rbac := d.Objects().RBAC
	return Rights{
		User: func(name, cluster string) (u *v1alpha1.User, rows []v1alpha1.MembershipIndexEntry) {
			if found, ok := d.Views.ByName(name); ok {
				u = found
			}
			org, _ := d.Views.OrgByCluster(cluster)
			for _, m := range d.Views.MembershipsOf(name) {
				if kcp.ClusterOf(m) == cluster && m.DeletionTimestamp.IsZero() && org.Organization != nil {
					rows = append(rows, v1alpha1.MembershipIndexEntry{OrgUUID: org.UUID(), WorkspaceUUID: tenancy.WorkspaceUUID(m), Role: m.Spec.Role})
				}
			}
			return u, rows
		},
		Global: func(ref v1alpha1.APIExportRef) bool {
			return slices.ContainsFunc(d.Views.CatalogEntriesOf(""), func(e *v1alpha1.CatalogEntry) bool {
				return e.Spec.APIExport == ref && e.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionSlugUnique)
			})
		},
		Bindings: func(ctx context.Context, at string, f func(*rbacv1.ClusterRoleBinding)) error {
			return rbac.Bindings.Each(ctx, at, v1alpha1.ManagedByLabel+"!="+v1alpha1.ManagedByHub, func(b *rbacv1.ClusterRoleBinding) error {
				f(b)
				return nil
			})
		},
		Role: func(ctx context.Context, at, name string) (*rbacv1.ClusterRole, error) {
			role, _, err := rbac.Roles.Find(ctx, at, name)
			return role, err
		},
	}
}

func grantsOf(d reconciler.Deps) Grants {
	rbac := d.Objects().RBAC
	read := func(ctx context.Context, at, name string) ([]tenancy.RBAC, error) {
		return readGrant(ctx, d, rbac, at, name)
	}
	return Grants{
		Find: func(ctx context.Context, at, name string) ([]tenancy.RBAC, error) {
			if _, ok := d.Views.WorkspaceKeyOf(at); !ok || controller.Forced(ctx) {
				return read(ctx, at, name)
			}
			role, hasRole := rbac.Roles.Get(at, name)
			binding, hasBinding := rbac.Bindings.Get(at, name)
			return found(role, hasRole, binding, hasBinding), nil
		},
		Read: read,
		Keep: rbac.Keep,
		List: func(ctx context.Context, at string) (names []string, err error) {
			err = rbac.Bindings.Each(ctx, at, v1alpha1.ManagedByLabel+"="+v1alpha1.ManagedByHub, func(b *rbacv1.ClusterRoleBinding) error {
				names = append(names, b.Name)
				return nil
			})
			return names, err
		},
	}
}

// found returns the objects of a grant that exist.
func found(role *rbacv1.ClusterRole, hasRole bool, binding *rbacv1.ClusterRoleBinding, hasBinding bool) (held []tenancy.RBAC) {
	if hasRole {
		held = append(held, role)
	}
	if hasBinding {
		held = append(held, binding)
	}
	return held
}

// readGrant reads a role and a binding from kcp. There are none if the workspace is gone.
func readGrant(ctx context.Context, d reconciler.Deps, rbac objects.RBAC, at, name string) ([]tenancy.RBAC, error) {
	role, err := d.Clients.ClusterRoles(at).Get(ctx, name, metav1.GetOptions{})
	hasRole := err == nil
	if err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
		if gone, err := workspaceGone(ctx, d, at, err); gone || err != nil {
			return nil, err
		}
	}
	binding, hasBinding, err := rbac.Bindings.Find(ctx, at, name)
	return found(role, hasRole, binding, hasBinding), err
}
