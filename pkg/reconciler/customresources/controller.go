package customresources

import (
	"context"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// sweepWorkers is the number of Workspaces that the sweep lists at once. It is not
// urgent, and each costs a request.
const sweepWorkers = 2

// NewController returns the sweep over all child Workspaces.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{
		Name: "customresources-sweep", Workers: sweepWorkers, All: reconciler.Keys(d.Views.ChildWorkspaces.Keys),
	}, New(configOf(d)).Look)
	// The template that made a Workspace Ready may have brought definitions.
	d.Views.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if becameReady(ws.Old, ws.New) {
			c.Enqueue(controller.Key{Cluster: ws.Cluster(), Name: ws.New.Name})
		}
	})
	return c
}

// Follower follows the definitions that tenants write through this replica. It runs on
// every replica.
type Follower struct {
	*controller.Controller
	deps  reconciler.Deps
	found *CustomResources
}

// NewFollower returns the controller. The Clients of d must not need leadership.
func NewFollower(d reconciler.Deps) *Follower {
	found := New(configOf(d))
	return &Follower{Controller: d.Controller(controller.Options{Name: "customresources"}, found.Follow), deps: d, found: found}
}

// Wrote handles a write in a Workspace that went through the proxy.
func (f *Follower) Wrote(e tenancy.Entry, w tenancy.ObjectWrite) {
	if !w.DefinesResources() {
		return
	}
	if key, ok := f.deps.Workspace(e.Workspace); ok {
		f.found.Written(key)
		f.Enqueue(key)
	}
}

func configOf(d reconciler.Deps) Config {
	return Config{
		Clock: d.Settings.Clock,
		Workspace: func(key controller.Key) (*kcptenancyv1alpha1.Workspace, bool) {
			org, ok := d.Views.OrgByCluster(key.Cluster)
			if !ok || org.Organization == nil || org.Deleted() {
				return nil, false
			}
			ws, ok := d.Views.ChildWorkspaces.Get(key.Cluster, key.Name)
			if !ok {
				return nil, false
			}
			is := tenancy.WorkspaceOf(org.UUID(), ws)
			return ws, is.KCPReady && is.ClusterID != "" && !is.Deleted()
		},
		List: func(ctx context.Context, cluster string) ([]string, error) {
			names, more, err := d.Clients.CustomResourceDefinitions(ctx, cluster, tenancy.MaxCustomResources)
			if more {
				log.From(ctx).Warn("a workspace has more CustomResourceDefinitions than its roles cover", zap.String("cluster", cluster), zap.Int("covered", tenancy.MaxCustomResources))
			}
			return names, err
		},
		Annotate: func(ctx context.Context, key controller.Key, ws *kcptenancyv1alpha1.Workspace, value string) error {
			return d.Objects().Workspaces.Annotate(ctx, key.Cluster, ws, tenancy.CustomResourcesAnnotation, value)
		},
	}
}

// becameReady reports whether a change made a Workspace Ready.
func becameReady(old, new *kcptenancyv1alpha1.Workspace) bool {
	return new != nil && tenancy.WorkspaceOf("", new).Ready() && (old == nil || !tenancy.WorkspaceOf("", old).Ready())
}
