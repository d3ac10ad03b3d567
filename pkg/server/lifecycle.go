package server

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
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

// removeOrg removes an Organization and tells when it is gone.
func (w *writes) removeOrg(ctx context.Context, uuid string) (gone bool, err error) {
	client := w.clients.Organizations(w.clusters.Orgs)
	o, err := client.Get(ctx, uuid, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil || !o.DeletionTimestamp.IsZero():
		return false, err
	}
	return false, remove(ctx, client, o)
}

// deleteOrg soft-deletes an Org, as its last admin is gone.
func (w *writes) deleteOrg(now func() time.Time) func(ctx context.Context, org tenancy.Org) error {
	return func(ctx context.Context, org tenancy.Org) error {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"deletionRequestedAt":%q}}`,
			org.UID, org.ResourceVersion, tenancy.RequestedAt(now()))
		_, err := w.clients.Organizations(w.clusters.Orgs).Patch(ctx, org.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, "status")
		return again(err)
	}
}

// inOrg does something in an Org's own logical cluster, which is deactivated where the
// Org is soft-deleted.
func (c *controllers) inOrg(ctx context.Context, cluster string, f func() error) error {
	return again(c.deps.Freezer.Within(ctx, cluster, func() bool { return c.deps.OrgDeactivated(cluster) }, f))
}

func (c *controllers) purged(ctx context.Context, e audit.Event) {
	e.Actor, e.Action = "kedge-hub", "purge"
	log.From(ctx).Info("purged", zap.String("org", e.Org), zap.String("workspace", e.Workspace), zap.String("object", e.Object), zap.Any("counts", e.Counts))
	c.audit.Write(e)
}

func (c *controllers) purgedUser(ctx context.Context, u *v1alpha1.User, counts map[string]int) {
	c.purged(ctx, audit.Event{Object: u.Name, Counts: counts})
}

func (c *controllers) purgedWorkspace(ctx context.Context, orgCluster, workspace string, counts map[string]int) {
	e := audit.Event{Workspace: workspace, Counts: counts}
	if org, ok := c.views.OrgByCluster(orgCluster); ok {
		e.Org = org.UUID()
	}
	c.purged(ctx, e)
}
