package server

import (
	"context"
	"encoding/json"
	"fmt"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// sweepers is how many Workspaces are looked at at once for definitions that no
// replica saw come: it is in no hurry, and each look is a request.
const sweepers = 2

// customResources follows the definitions that tenants write through this replica.
// It runs on every one, leading or not: clients are not fenced.
type customResources struct {
	*controller.Controller
	found *access.CustomResources
	key   func(tenancy.Workspace) (controller.Key, bool)
}

func (c *controllers) newCustomResources(clients *kcp.Clients) *customResources {
	found := access.NewCustomResources(c.customResourcesConfig(clients))
	return &customResources{
		Controller: controller.New(controller.Options{Name: "customresources"}, c.metrics, found.Follow),
		found:      found,
		key: func(ws tenancy.Workspace) (controller.Key, bool) {
			org, ok := c.views.Org(ws.OrgUUID)
			return controller.Key{Cluster: org.ClusterID, Name: ws.UUID}, ok && org.ClusterID != ""
		},
	}
}

// wrote handles a write in a Workspace that went through the proxy.
func (c *customResources) wrote(e tenancy.Entry, w tenancy.ObjectWrite) {
	if !w.DefinesResources() {
		return
	}
	if key, ok := c.key(e.Workspace); ok {
		c.found.Written(key)
		c.Enqueue(key)
	}
}

func (c *controllers) customResourcesConfig(clients *kcp.Clients) access.CustomResourcesConfig {
	return access.CustomResourcesConfig{
		Clock: c.config.Clock,
		Workspace: func(key controller.Key) (*kcptenancyv1alpha1.Workspace, bool) {
			org, ok := c.views.OrgByCluster(key.Cluster)
			if !ok || org.Organization == nil || org.Deleted() {
				return nil, false
			}
			ws, ok := c.in.Workspaces.Get(key.Cluster, key.Name)
			if !ok {
				return nil, false
			}
			is := tenancy.WorkspaceOf(org.UUID(), ws)
			return ws, is.KCPReady && is.ClusterID != "" && !is.Deleted()
		},
		List: func(ctx context.Context, cluster string) ([]string, error) {
			names, more, err := clients.CustomResourceDefinitions(ctx, cluster, tenancy.MaxCustomResources)
			if more {
				log.From(ctx).Warn("a workspace has more CustomResourceDefinitions than its roles cover", zap.String("cluster", cluster), zap.Int("covered", tenancy.MaxCustomResources))
			}
			return names, err
		},
		Annotate: func(ctx context.Context, key controller.Key, ws *kcptenancyv1alpha1.Workspace, value string) error {
			patch, err := annotation(ws, tenancy.CustomResourcesAnnotation, value)
			if err != nil {
				return err
			}
			_, err = clients.Workspaces(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
			return again(err)
		},
	}
}

// annotation is the merge patch that sets an annotation on just the object that it
// is given; empty takes it off.
func annotation(o metav1.Object, name, value string) ([]byte, error) {
	set := map[string]any{name: value}
	if value == "" {
		set[name] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "annotations": set,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the annotation %s: %w", name, err)
	}
	return patch, nil
}

// becameReady tells whether a Workspace has everything now that had not before.
func becameReady(old, new *kcptenancyv1alpha1.Workspace) bool {
	return new != nil && tenancy.WorkspaceOf("", new).Ready() && (old == nil || !tenancy.WorkspaceOf("", old).Ready())
}
