package server

import (
	"context"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// repairAfter is how long what tenants alter of the template stays altered, so that
// they do not decide how often it is applied.
const repairAfter = time.Second

// newTemplate is what the operator wants every Workspace to hold.
func (c *controllers) newTemplate(w *writes) *workspace.Template {
	return workspace.NewTemplate(workspace.TemplateConfig{
		Clock: c.config.Clock, Objects: c.config.Template, Bindings: c.in.Bindings.InCluster,
		Apply: func(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			got, err := w.clients.Apply(ctx, cluster, o)
			return got, kcp.ExplainRefusal(o, err)
		},
		UpdateBinding: func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error {
			return put(ctx, w.clients.APIBindings(cluster), b)
		},
	})
}

// repairs asks whoever leads to apply the template anew where tenants altered it
// through this replica: nothing else sees what kinds of their own hold. It runs on
// every replica; clients are not fenced.
type repairs struct {
	*controller.Controller
	template *workspace.Template
	orgs     func(uuid string) (tenancy.Org, bool)
}

func (c *controllers) newRepairs(clients *kcp.Clients) *repairs {
	return &repairs{
		template: c.template, orgs: c.views.Org,
		Controller: controller.New(controller.Options{Name: "template-repair"}, c.metrics, func(ctx context.Context, key controller.Key) (controller.Result, error) {
			ws, ok := c.in.Workspaces.Get(key.Cluster, key.Name)
			if !ok || ws.Annotations[v1alpha1.OperationAnnotation] != "" {
				return controller.Result{}, nil
			}
			return controller.Result{}, askToReconcile(ctx, clients, key, ws)
		}),
	}
}

func askToReconcile(ctx context.Context, clients *kcp.Clients, key controller.Key, ws *kcptenancyv1alpha1.Workspace) error {
	patch, err := annotation(ws, v1alpha1.OperationAnnotation, v1alpha1.OperationReconcile)
	if err != nil {
		return err
	}
	_, err = clients.Workspaces(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	return again(err)
}

// wrote handles a write in a Workspace that went through the proxy.
func (r *repairs) wrote(e tenancy.Entry, w tenancy.ObjectWrite) {
	if !r.template.Written(e.Workspace.ClusterID, w) {
		return
	}
	if org, ok := r.orgs(e.Workspace.OrgUUID); ok && org.ClusterID != "" {
		r.EnqueueAfter(controller.Key{Cluster: org.ClusterID, Name: e.Workspace.UUID}, repairAfter)
	}
}
