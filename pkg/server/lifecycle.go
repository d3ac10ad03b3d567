package server

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// phaseClosed is what the hub makes of a logical cluster that it freezes. Were it
// Ready, kcp (0.32) would turn it Inactive, and with that end the wildcard requests
// of the whole shard, its own watches among them, until some cluster is active
// again. kcp's admission lets its shard admin alone do that.
const phaseClosed = kcpcorev1alpha1.LogicalClusterPhaseUnavailable

// errNotFrozen says that kcp does not let the hub freeze, which is no reason to try
// again: the hub, and the bindings that it takes away, refuse everybody.
var errNotFrozen = errs.New(errs.Forbidden, "kcp does not let the hub's identity freeze it; the kubeconfig of --kcp-kubeconfig needs the context "+shardAdmin+" of kcp's admin.kubeconfig, or a user of the group system:masters")

// freeze closes a logical cluster in kcp itself: it refuses everybody (O-13).
func (w *writes) freeze(ctx context.Context, cluster string) error {
	defer w.doors.hold(cluster)()
	return w.closeDoor(ctx, cluster)
}

func (w *writes) closeDoor(ctx context.Context, cluster string) error {
	lc, err := w.setPhase(ctx, cluster, kcpcorev1alpha1.LogicalClusterPhaseReady, phaseClosed)
	if apierrors.IsForbidden(err) {
		w.refused()
		return errNotFrozen
	}
	// It is made active again, and then Ready.
	if err == nil && lc != nil && lc.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseInactive {
		return fmt.Errorf("%w: kcp calls it Inactive", controller.ErrRetry)
	}
	// One that kcp is still making would become Ready all the same.
	if err != nil || lc == nil || lc.Status.Phase != phaseClosed {
		return err
	}
	// Whoever opened it since it was read has made it Ready.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q,"annotations":{%q:"true"}}}`, lc.UID, lc.ResourceVersion, kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey)
	_, err = w.logicalCluster(cluster).Patch(ctx, kcpcorev1alpha1.LogicalClusterName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	return again(unlessGone(err))
}

// notFrozen has the bindings taken from what is deleted and cannot be frozen.
func (c *controllers) notFrozen() {
	if !c.cannotFreeze.Swap(true) {
		for _, key := range c.allWorkspaces() {
			c.access.Enqueue(key)
		}
	}
}

// thaw opens it again.
func (w *writes) thaw(ctx context.Context, cluster string) error {
	defer w.doors.hold(cluster)()
	return w.openDoor(ctx, cluster)
}

func (w *writes) openDoor(ctx context.Context, cluster string) error {
	if err := w.active(ctx, cluster); err != nil {
		return err
	}
	_, err := w.setPhase(ctx, cluster, phaseClosed, kcpcorev1alpha1.LogicalClusterPhaseReady)
	return err
}

// release lets kcp, and nobody else, work in a logical cluster that is to go.
func (w *writes) release(ctx context.Context, cluster string) error {
	defer w.doors.hold(cluster)()
	return w.active(ctx, cluster)
}

func (w *writes) active(ctx context.Context, cluster string) error {
	_, err := w.logicalCluster(cluster).Patch(ctx, kcpcorev1alpha1.LogicalClusterName, types.MergePatchType, unmarked(""), metav1.PatchOptions{FieldManager: kcp.FieldManager})
	return unlessGone(err)
}

// setPhase changes the phase of a logical cluster from one to another, leaves every
// other phase alone, and returns it as it is then; nil where it is gone.
func (w *writes) setPhase(ctx context.Context, cluster string, from, to kcpcorev1alpha1.LogicalClusterPhaseType) (*kcpcorev1alpha1.LogicalCluster, error) {
	lc, err := w.logicalCluster(cluster).Get(ctx, kcpcorev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return nil, unlessGone(err)
	}
	if lc.Status.Phase != from {
		return lc, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"phase":%q}}`, lc.UID, lc.ResourceVersion, to)
	if lc, err = w.logicalCluster(cluster).Patch(ctx, kcpcorev1alpha1.LogicalClusterName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, "status"); err != nil {
		return nil, again(unlessGone(err))
	}
	return lc, nil
}

// logicalCluster is a client of the object that kcp keeps of the cluster in it: of
// whoever may close it, because who may not cannot read a closed one either.
func (w *writes) logicalCluster(cluster string) *kcp.Client[*kcpcorev1alpha1.LogicalCluster] {
	return w.closer.LogicalClusters(w.closer.ClusterURL(cluster))
}

// unlessGone forgives that there is nothing left to change. kcp says Forbidden of a
// logical cluster that does not exist any more.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
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

func (w *writes) listWorkspaces(ctx context.Context, cluster string) ([]kcptenancyv1alpha1.Workspace, error) {
	var list kcptenancyv1alpha1.WorkspaceList
	err := w.clients.Workspaces(cluster).GetClient().Get().Resource("workspaces").Do(ctx).Into(&list)
	return list.Items, err
}

func (w *writes) ownWorkspace(ctx context.Context, org string) (*kcptenancyv1alpha1.Workspace, bool, error) {
	ws, err := w.clients.Workspaces(w.clusters.Orgs).Get(ctx, org, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return ws, err == nil, err
}

// removeWorkspace removes a kcp Workspace, whatever changed in it meanwhile: what it
// is in is on its way out.
func (w *writes) removeWorkspace(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error {
	if err := remove(ctx, w.clients.Workspaces(cluster), ws); err != nil || ws.Spec.Cluster == "" {
		return err
	}
	return w.release(ctx, ws.Spec.Cluster)
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

// inOrg does something in an Org's own logical cluster, which is frozen where the
// Org is soft-deleted.
func (c *controllers) inOrg(ctx context.Context, w *writes, cluster string, f func() error) error {
	return w.within(ctx, cluster, func() bool {
		org, ok := c.views.OrgByCluster(cluster)
		return ok && c.frozen(org)
	}, f)
}

// within does something in a logical cluster, which may be frozen.
func (w *writes) within(ctx context.Context, cluster string, frozen func() bool, f func() error) error {
	if !frozen() {
		return f()
	}
	defer w.doors.hold(cluster)()
	if err := w.openDoor(ctx, cluster); err != nil {
		return err
	}
	failure := f()
	// Whoever undeleted it meanwhile opens it, before this or after it.
	if !frozen() {
		return failure
	}
	if err := w.closeDoor(ctx, cluster); !errors.Is(err, errNotFrozen) {
		return errors.Join(failure, err)
	}
	return failure
}

// doors are held by whoever closes or opens a logical cluster, which is more than one
// write: half of each, and it would be Ready and inactive. Some share one.
type doors [64]sync.Mutex

func (d *doors) hold(cluster string) (release func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(cluster))
	door := &d[h.Sum32()%uint32(len(d))]
	door.Lock()
	return door.Unlock
}

func (c *controllers) purged(ctx context.Context, e audit.Event) {
	e.Actor, e.Action = "kedge-hub", "purge"
	log.From(ctx).Info("purged", zap.String("org", e.Org), zap.String("workspace", e.Workspace), zap.String("object", e.Object), zap.Any("counts", e.Counts))
	c.audit.Write(e)
}

func (c *controllers) purgedOrg(ctx context.Context, o *v1alpha1.Organization, counts map[string]int) {
	c.purged(ctx, audit.Event{Org: o.Name, Counts: counts})
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
