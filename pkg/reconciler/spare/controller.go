package spare

import (
	"context"
	"time"

	"github.com/google/uuid"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// ConfigOf returns what decides which spares are wanted. With it alone nothing can be written.
func ConfigOf(d reconciler.Deps) Config {
	return Config{
		Clock: d.Settings.Clock, Hash: d.Settings.Spares.Hash,
		Organizations: d.Settings.Spares.Organizations, Workspaces: d.Settings.Spares.Workspaces,
		OrgsCluster: d.Clusters.Orgs, Cache: d.Views,
	}
}

// NewController returns the controller of spares.
func NewController(d reconciler.Deps, m *Metrics) *controller.Controller {
	making := newPending(d.Settings.Clock)
	config := ConfigOf(d)
	config.Full, config.Busy, config.Idle, config.Discarded = d.Settings.Spares.Full, making.any, making.wait, m.discard
	w := &writer{Deps: d, stored: d.Objects(), making: making}
	w.bindings = objects.KeptBindings(w.stored.Bindings, d.Clusters.OrgBindings, d.Views.OrgBindings.InCluster)
	config.KCP = w
	c := d.Controller(controller.Options{Name: "spare", Workers: 1, All: func() []controller.Key { return parents(d) }}, New(config))

	enqueue := func(cluster string) {
		if cluster != "" {
			c.Enqueue(controller.Key{Cluster: cluster})
		}
	}
	free := func(keys []controller.Key) {
		for _, key := range keys {
			c.Enqueue(key)
		}
	}
	note := func(ws views.Change[*kcptenancyv1alpha1.Workspace], begins bool, made func(*kcptenancyv1alpha1.Workspace) bool) {
		unfinished := ws.New != nil && ws.New.DeletionTimestamp.IsZero() && !made(ws.New)
		free(making.note(controller.Key{Cluster: ws.Cluster(), Name: ws.Object().Name}, unfinished, begins))
	}
	inKCP := func(ws *kcptenancyv1alpha1.Workspace) bool {
		return ws.Status.Phase != "" && ws.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseScheduling &&
			ws.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseInitializing
	}
	d.Views.OrgWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		note(ws, ws.Added(), inKCP)
		if ws.Moved(func(ws *kcptenancyv1alpha1.Workspace) any { return ws.Status.Phase }) {
			enqueue(ws.Object().Spec.Cluster)
		}
	})
	d.Views.Organizations.OnChange(func(o views.Change[*v1alpha1.Organization]) {
		// Its workspace, which a spare one is before it, has a key of its own.
		free(making.note(controller.Key{Cluster: o.Cluster(), Name: "organization/" + o.Object().Name}, awaited(o.New), o.Added()))
	})
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		note(ws, ws.Added(), func(ws *kcptenancyv1alpha1.Workspace) bool {
			return inKCP(ws) && (tenancy.WorkspaceOf("", ws).Ready() || ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation] != "")
		})
		if ws.Added() {
			enqueue(ws.Cluster())
		}
	})
	d.Views.Spares.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if now, ok := d.Views.ChildWorkspaces.Get(ws.Cluster(), ws.Object().Name); ok && ws.New == nil && now.UID == ws.Old.UID {
			// It is one of the other Workspaces now, which are noted above.
			m.take(ws.Cluster())
		} else {
			note(ws, true, func(o *kcptenancyv1alpha1.Workspace) bool {
				// Somebody waits for a reserved one: the next one is made after them.
				s := tenancy.SpareOf(o)
				return inKCP(o) && s.Reserved == nil && (ws.Cluster() == d.Clusters.Orgs || s.Whole)
			})
		}
		enqueue(ws.Cluster())
		if ws.Cluster() == d.Clusters.Orgs {
			enqueue(ws.Object().Spec.Cluster)
		}
		if key, ok := d.Views.SpareKeyOf(ws.Cluster()); ok {
			enqueue(key.Cluster)
		}
	})
	d.Views.Initializing.OnChange(func(lc views.Change[*kcpcorev1alpha1.LogicalCluster]) {
		if lc.New != nil && d.WaitsForHub(lc.New) {
			enqueue(d.Clusters.Orgs)
		}
	})
	d.Views.Organizations.Follow(reconciler.OrgDeletion, func(o views.Change[*v1alpha1.Organization]) {
		if org, ok := d.Views.Org(o.Object().Name); ok {
			enqueue(org.ClusterID)
		}
	})
	return c
}

// awaited reports whether somebody waits for an Organization, which is nil if it is gone.
func awaited(o *v1alpha1.Organization) bool {
	return o != nil && o.DeletionTimestamp.IsZero() && o.Status.DeletionRequestedAt == nil && o.Status.Phase != v1alpha1.PhaseReady
}

// parents returns the keys of the logical clusters that have spares, or are to have some.
func parents(d reconciler.Deps) []controller.Key {
	keys := []controller.Key{{Cluster: d.Clusters.Orgs}}
	for _, cluster := range d.Views.SpareParents() {
		keys = append(keys, controller.Key{Cluster: cluster})
	}
	for _, s := range d.Views.SparesIn(d.Clusters.Orgs) {
		keys = append(keys, controller.Key{Cluster: s.ClusterID})
	}
	for _, org := range d.Views.Orgs() {
		keys = append(keys, controller.Key{Cluster: org.ClusterID})
	}
	return keys
}

// writer implements KCP.
type writer struct {
	reconciler.Deps
	stored   objects.Objects
	bindings tenancy.Bindings
	making   *pending
}

// Create implements KCP.
func (w *writer) Create(ctx context.Context, in string) error {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name = uuid.NewString()
	ws.Labels = map[string]string{v1alpha1.SpareLabel: w.Settings.Spares.Hash}
	ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeWorkspace, Path: w.Settings.Tree.Root()}
	if in == w.Clusters.Orgs {
		ws.Spec.Type.Name = tenancy.TypeOrganization
	}
	_, err := w.stored.Workspaces.Make(ctx, in, ws)
	if err == nil {
		// The event comes after the next key may have been looked at.
		w.making.note(controller.Key{Cluster: in, Name: ws.Name}, true, true)
	}
	return err
}

// Finish implements KCP.
func (w *writer) Finish(ctx context.Context, s tenancy.Spare) (time.Duration, error) {
	if s.KCPReady {
		return 0, nil
	}
	cluster, ok := w.InitializingCluster(s.Name)
	if !ok {
		return 0, nil
	}
	if waiting, after, err := w.bindings.Keep(ctx, cluster, nil, false); err != nil || waiting != "" || after > 0 {
		return after, err
	}
	// kcp's admission takes 100 ms for the first object of the hub's API in a workspace. The first one that is stored is the
	// Membership of who takes the spare.
	if err := w.stored.Memberships.Try(ctx, cluster, tenancy.NewMembership("nobody", "", v1alpha1.RoleAdmin)); err != nil {
		return 0, err
	}
	return 0, w.Initialize(ctx, s.Name, cluster)
}

// Delete implements KCP.
func (w *writer) Delete(ctx context.Context, in string, s tenancy.Spare) error {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.UID, ws.ResourceVersion = s.Name, s.UID, s.ResourceVersion
	return w.stored.Workspaces.DeleteUnchanged(ctx, in, ws)
}

// Claimed implements KCP.
func (w *writer) Claimed(ctx context.Context, in string, s tenancy.Spare) (bool, error) {
	if in != w.Clusters.Orgs {
		org, ok := w.Views.OrgByCluster(in)
		if !ok {
			return false, nil
		}
		now, ok, err := w.stored.Organizations.Find(ctx, w.Clusters.Orgs, org.UUID())
		return ok && tenancy.ClaimsWorkspace(now, s.Name), err
	}
	if made, err := w.stored.Organizations.Exists(ctx, in, s.Name); err != nil || made {
		return made, err
	}
	if s.Reserved.User != "" {
		u, ok, err := w.stored.Users.Find(ctx, w.Clusters.Users, s.Reserved.User)
		return ok && tenancy.ClaimsOrg(u, s.Name), err
	}
	claimed := false
	if s.Reserved.Identity == "" {
		return false, nil
	}
	err := w.stored.Users.Each(ctx, w.Clusters.Users, v1alpha1.IdentityLabel+"="+s.Reserved.Identity, func(u *v1alpha1.User) error {
		claimed = claimed || tenancy.ClaimsOrg(u, s.Name)
		return nil
	})
	return claimed, err
}
