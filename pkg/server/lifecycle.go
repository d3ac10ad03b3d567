package server

import (
	"context"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// retrying returns f with the conflicts of another writer as controller.ErrRetry.
func retrying(f func(ctx context.Context, cluster string) error) func(ctx context.Context, cluster string) error {
	return func(ctx context.Context, cluster string) error { return again(f(ctx, cluster)) }
}

// fenced removes the very version of an object that it is given.
func fenced[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return again(err)
}

func (c *controllers) purged(ctx context.Context, e audit.Event) {
	e.Actor, e.Action = "kedge-hub", "purge"
	log.From(ctx).Info("purged", zap.String("org", e.Org), zap.String("workspace", e.Workspace), zap.String("object", e.Object), zap.Any("counts", e.Counts))
	c.audit.Write(e)
}

func (c *controllers) purgedWorkspace(ctx context.Context, orgCluster, workspace string, counts map[string]int) {
	e := audit.Event{Workspace: workspace, Counts: counts}
	if org, ok := c.views.OrgByCluster(orgCluster); ok {
		e.Org = org.UUID()
	}
	c.purged(ctx, e)
}
