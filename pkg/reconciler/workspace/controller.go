package workspace

import (
	"context"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/admission"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// accessDelay is the time after which the status of a Ready Workspace says that bindings are
// missing.
const accessDelay = 500 * time.Millisecond

// delayOf is the time after which a change of the rights in a Workspace is looked at. ws is nil
// if the cache does not have it.
func delayOf(ws *kcptenancyv1alpha1.Workspace) time.Duration {
	if ws != nil && tenancy.WorkspaceOf("", ws).Ready() {
		return accessDelay
	}
	return 0
}

// NewController returns the controller of child Workspaces, which applies the template. missing counts
// the RBAC objects of people that a Workspace lacks.
func NewController(d reconciler.Deps, template *Template, missing func(controller.Key) int) *controller.Controller {
	all := func() []views.Key { return append(d.Views.ChildWorkspaces.Keys(), d.Views.Spares.Keys()...) }
	c := d.Controller(controller.Options{Name: "workspace", All: reconciler.Keys(all)}, New(configOf(d, template, missing)))
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if ws.New == nil {
			template.Forget(ws.Old.Spec.Cluster)
		}
		ends := ws.Ends(func(ws *kcptenancyv1alpha1.Workspace) any {
			return ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation]
		})
		reconciler.Enqueue(c, ends)(controller.Key{Cluster: ws.Cluster(), Name: ws.Object().Name})
	})
	d.Views.Spares.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		c.Enqueue(controller.Key{Cluster: ws.Cluster(), Name: ws.Object().Name})
	})
	// A Workspace becomes Ready after the access controller has created all bindings. One that
	// is Ready stays so while that controller follows a Membership.
	d.OnGrants(func(key controller.Key) {
		ws, _ := d.Views.ChildWorkspaces.Get(key.Cluster, key.Name)
		c.EnqueueAfter(key, delayOf(ws))
	})
	d.OnRules(c.Enqueue)
	enqueueCluster := func(cluster string) { d.In(cluster, c.Enqueue) }
	d.Views.Policies.OnChange(func(p views.Change[*admissionv1.ValidatingAdmissionPolicy]) { enqueueCluster(p.Cluster()) })
	d.Views.PolicyBindings.OnChange(func(b views.Change[*admissionv1.ValidatingAdmissionPolicyBinding]) { enqueueCluster(b.Cluster()) })
	// spec.memberResources limits what members may write.
	d.Views.CatalogEntries.Follow(entryFields, func(e views.Change[*v1alpha1.CatalogEntry]) {
		for _, key := range d.Views.WorkspacesBinding(e.Object().Spec.APIExport) {
			if e.Cluster() == key.Cluster || e.Cluster() == d.Clusters.Providers {
				c.Enqueue(controller.Key(key))
			}
		}
	})
	d.Views.Inactive.OnChange(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) { enqueueCluster(lc.Cluster()) })
	return c
}

// entryFields are all but the display name and the status.
func entryFields(e *v1alpha1.CatalogEntry) any {
	spec := e.Spec
	spec.DisplayName = ""
	return []any{views.Metadata(e), spec}
}

func configOf(d reconciler.Deps, template *Template, missing func(controller.Key) int) Config {
	// With one connection for all, one process of kcp would answer every dry run.
	probes := d.Clients
	if d.Settings.PolicyWindow > 0 {
		probes = d.Clients.Fresh()
	}
	stored := d.Objects()
	return Config{
		Objects: stored, Clock: d.Settings.Clock, RightsClock: d.Settings.RightsClock, Graces: d.Settings.Graces, Hold: d.Settings.Hold,
		OrgsCluster: d.Clusters.Orgs, Views: d.Views, Namespaces: d.Views.Namespaces, Roles: rolesCache(d.Views),
		Clusters: objects.Clusters{Freezer: d.Freezer}, Missing: missing, Apply: d.Clients.Apply, Wanted: d.Clusters.WorkspaceBindings,
		Policy: admission.New(d.Clusters.WorkspacePolicy, d.Clients, probes, d.Views), PolicyWindow: d.Settings.PolicyWindow,
		Template: template,
		Ended: func(ctx context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace, mark string) error {
			return d.WorkspaceEnded(orgCluster, ws.Name, mark, func() error {
				return stored.Workspaces.Annotate(ctx, orgCluster, ws, v1alpha1.DeletionRequestedAtAnnotation, mark)
			})
		},
		Purged: func(ctx context.Context, orgCluster, workspace string, counts map[string]int) {
			e := audit.Event{Workspace: workspace}
			if org, ok := d.Views.OrgByCluster(orgCluster); ok {
				e.Org = org.UUID()
			}
			d.Purged(ctx, e, counts)
		},
	}
}

func rolesCache(v *views.Views) RolesCache {
	return RolesCache{Bindings: v.Bindings.InCluster, MemberResources: v.MemberResources, ClusterRoles: v.ClusterRoles.InCluster}
}

// RoleChanges returns a func that compares the ClusterRoles of a child Workspace with those that it is to have.
func RoleChanges(v *views.Views) func(*kcptenancyv1alpha1.Workspace) tenancy.RBACChanges {
	cache := rolesCache(v)
	return func(ws *kcptenancyv1alpha1.Workspace) tenancy.RBACChanges {
		held, wanted := cache.of(ws)
		return tenancy.CompareRBAC(held, wanted, false)
	}
}

// PolicyInPlace returns a func that reports whether a logical cluster has the admission policy of child
// Workspaces, and its binding.
func PolicyInPlace(policy tenancy.Policy, v *views.Views) func(cluster string) bool {
	return admission.New(policy, nil, nil, v).InPlace
}

// NewRolesFollowed returns a func that reports whether the ClusterRoles of a child Workspace of
// the Organization cover, in the cache, all that is bound there. It is false for a Workspace
// that the cache does not have.
func NewRolesFollowed(v *views.Views) func(org, workspace string) bool {
	changes := RoleChanges(v)
	return func(orgUUID, workspace string) bool {
		org, ok := v.Org(orgUUID)
		if !ok {
			return false
		}
		ws, ok := v.ChildWorkspaces.Get(org.ClusterID, workspace)
		if !ok {
			return false
		}
		return changes(ws).Count() == 0
	}
}

// TemplateOf returns the template of the operator.
func TemplateOf(d reconciler.Deps) *Template {
	return NewTemplate(TemplateConfig{
		Clock: d.Settings.Clock, Objects: d.Settings.Template, Bindings: d.Views.Bindings.InCluster,
		Apply: func(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			got, err := d.Clients.Apply(ctx, cluster, o)
			return got, kcp.ExplainRefusal(o, err)
		},
		UpdateBinding: d.Objects().Bindings.Put,
	})
}
