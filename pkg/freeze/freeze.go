package freeze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/keylock"
)

const (
	phaseReady = kcpcorev1alpha1.LogicalClusterPhaseReady
	// phaseDeactivated is the phase that the hub gives a deactivated cluster.
	phaseDeactivated = kcpcorev1alpha1.LogicalClusterPhaseUnavailable
	phaseInactive    = kcpcorev1alpha1.LogicalClusterPhaseInactive

	inactiveAnnotation = kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey
	// legacyInactiveAnnotation is the older name of the annotation; kcp still honours it.
	legacyInactiveAnnotation = "internal.kcp.io/inactive"
)

// Freezer deactivates and activates logical clusters. It serializes the calls for one
// cluster, because each consists of several writes.
type Freezer struct {
	clients *kcp.Clients
	locate  Locate
	// inactive has the clusters in phase Unavailable or Inactive.
	inactive Lister
	locks    *keylock.Locks
	// forbidden is the message of the error for a missing right.
	forbidden string
}

// Lister reads logical clusters from memory.
type Lister interface {
	Get(cluster, name string) (*kcpcorev1alpha1.LogicalCluster, bool)
}

// Locate returns the base URL of the shard that a logical cluster lies on. It fails with NotFound if
// no shard has it.
type Locate func(ctx context.Context, cluster string) (base string, err error)

// New returns a Freezer. clients belong to the identity that may deactivate clusters; no
// other identity can read deactivated ones. hint tells the operator how to grant the
// right. It is part of the error that Deactivate returns without the right. locate is nil if
// the clients are those of the one shard.
func New(clients *kcp.Clients, locate Locate, inactive Lister, hint string) *Freezer {
	return &Freezer{
		clients: clients, locate: locate, inactive: inactive, locks: keylock.New(),
		forbidden: "kcp does not let the hub's identity deactivate it; " + hint,
	}
}

// Deactivated tells from the cache whether kcp refuses requests to a cluster.
func (f *Freezer) Deactivated(cluster string) bool {
	lc, ok := f.inactive.Get(cluster, kcpcorev1alpha1.LogicalClusterName)
	return ok && kcpcorev1alpha1.IsLogicalClusterInactive(lc.Annotations)
}

// Deactivate makes kcp refuse all requests to a cluster. It leaves a cluster alone that
// kcp is still creating or deletes. It fails with errs.Forbidden if the hub's identity
// may not deactivate clusters, and with errs.TooLarge if kcp refuses all requests to the
// cluster from then on and does not end its open watches.
func (f *Freezer) Deactivate(ctx context.Context, cluster string) error {
	return f.locked(ctx, cluster, f.deactivate)
}

// Activate makes kcp serve a cluster again.
func (f *Freezer) Activate(ctx context.Context, cluster string) error {
	return f.locked(ctx, cluster, f.activate)
}

// ActivateForDeletion lets kcp's own controllers work in a cluster so that kcp can
// delete its content. The cluster keeps its phase and serves nobody else.
func (f *Freezer) ActivateForDeletion(ctx context.Context, cluster string) error {
	return f.locked(ctx, cluster, f.unmark)
}

// Within calls do, which writes into the cluster. While deactivated returns true, the
// cluster is activated for the call and deactivated after it.
func (f *Freezer) Within(ctx context.Context, cluster string, deactivated func() bool, do func() error) error {
	if !deactivated() {
		return do()
	}
	return f.locked(ctx, cluster, func(ctx context.Context, cluster string) error {
		if err := f.activate(ctx, cluster); err != nil {
			return err
		}
		failure := do()
		// If the deletion was withdrawn meanwhile, another call activates the cluster, before
		// this one or after it.
		if !deactivated() {
			return failure
		}
		err := f.deactivate(ctx, cluster)
		if errs.Is(err, errs.Forbidden) || errs.Is(err, errs.TooLarge) {
			return failure
		}
		return errors.Join(failure, err)
	})
}

// locked calls do while no other call for the cluster runs.
func (f *Freezer) locked(ctx context.Context, cluster string, do func(ctx context.Context, cluster string) error) error {
	unlock, _, err := f.locks.Lock(ctx, cluster)
	if err != nil {
		return err
	}
	defer unlock()
	return do(ctx, cluster)
}

func (f *Freezer) deactivate(ctx context.Context, cluster string) error {
	lc, err := f.setPhase(ctx, cluster, phaseReady, phaseDeactivated)
	if apierrors.IsForbidden(err) {
		return errs.Wrap(errs.Forbidden, err, f.forbidden)
	}
	if err != nil || lc == nil {
		return err
	}
	switch lc.Status.Phase {
	case phaseInactive:
		// The activation controller makes it Ready first.
		return apierrors.NewConflict(kcpcorev1alpha1.Resource("logicalclusters"), lc.Name, fmt.Errorf("logical cluster %s is in phase Inactive", cluster))
	case phaseDeactivated:
	default:
		// kcp would still turn a cluster Ready that it is creating.
		return nil
	}
	// The resource version detects a write of Ready since the phase was read.
	patch, err := patchOf(lc, map[string]any{"annotations": map[string]any{inactiveAnnotation: "true"}}, nil)
	if err != nil {
		return err
	}
	_, err = f.patch(ctx, cluster, patch)
	if full(err) {
		return errs.Wrap(errs.TooLarge, err, watchesStay)
	}
	return ignoreNotFound(err)
}

// watchesStay says what is missing of a deactivation without the annotation.
const watchesStay = "kcp refuses everybody in its workspace; watches that clients hold at kcp itself stay open until they time out, " +
	"because its definitions fill the annotations of its LogicalCluster"

// full reports whether there is no room for an annotation: kcp (0.32) keeps a lock for every
// CustomResourceDefinition and every bound resource in one of them, and limits all together.
func full(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeTooLong)
	return ok && cause.Field == "metadata.annotations"
}

func (f *Freezer) activate(ctx context.Context, cluster string) error {
	if err := f.unmark(ctx, cluster); err != nil {
		return err
	}
	_, err := f.setPhase(ctx, cluster, phaseDeactivated, phaseReady)
	return err
}

// unmark removes the annotation that makes a cluster inactive.
func (f *Freezer) unmark(ctx context.Context, cluster string) error {
	patch, err := patchOf(nil, map[string]any{"annotations": unmarked()}, nil)
	if err != nil {
		return err
	}
	_, err = f.patch(ctx, cluster, patch)
	return ignoreNotFound(err)
}

// setPhase changes the phase of a cluster from one value to another and leaves every
// other phase alone. It returns the cluster as it is then, or nil if it is gone.
func (f *Freezer) setPhase(ctx context.Context, cluster string, from, to kcpcorev1alpha1.LogicalClusterPhaseType) (*kcpcorev1alpha1.LogicalCluster, error) {
	client, err := f.logicalCluster(ctx, cluster)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	lc, err := client.Get(ctx, kcpcorev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	if lc.Status.Phase != from {
		return lc, nil
	}
	patch, err := patchOf(lc, nil, map[string]any{"status": map[string]any{"phase": to}})
	if err != nil {
		return nil, err
	}
	if lc, err = f.patch(ctx, cluster, patch, "status"); err != nil {
		return nil, ignoreNotFound(err)
	}
	return lc, nil
}

// Reactivate removes the annotation that makes a cluster inactive from just this
// version of it. kcp then makes an Inactive cluster Ready.
func (f *Freezer) Reactivate(ctx context.Context, lc *kcpcorev1alpha1.LogicalCluster) error {
	patch, err := patchOf(lc, map[string]any{"annotations": unmarked()}, nil)
	if err != nil {
		return err
	}
	_, err = f.patch(ctx, kcp.ClusterOf(lc), patch)
	return ignoreNotFound(err)
}

func (f *Freezer) patch(ctx context.Context, cluster string, patch []byte, subresources ...string) (*kcpcorev1alpha1.LogicalCluster, error) {
	client, err := f.logicalCluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return client.Patch(ctx, kcpcorev1alpha1.LogicalClusterName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, subresources...)
}

func (f *Freezer) logicalCluster(ctx context.Context, cluster string) (*kcp.Client[*kcpcorev1alpha1.LogicalCluster], error) {
	at := f.clients.ClusterURL(cluster)
	if f.locate != nil {
		base, err := f.locate(ctx, cluster)
		if err != nil {
			return nil, err
		}
		at = base + "/clusters/" + cluster
	}
	return f.clients.LogicalClusters(at), nil
}

func unmarked() map[string]any {
	return map[string]any{inactiveAnnotation: nil, legacyInactiveAnnotation: nil}
}

// patchOf is a JSON merge patch of metadata and other fields. It applies to just this
// version of the cluster, or to any version if lc is nil.
func patchOf(lc *kcpcorev1alpha1.LogicalCluster, metadata, fields map[string]any) ([]byte, error) {
	of := map[string]any{}
	maps.Copy(of, metadata)
	if lc != nil {
		of["uid"], of["resourceVersion"] = lc.UID, lc.ResourceVersion
	}
	all := map[string]any{"metadata": of}
	maps.Copy(all, fields)
	patch, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the patch of a logical cluster: %w", err)
	}
	return patch, nil
}

// ignoreNotFound returns nil for a cluster that is gone. kcp answers Forbidden, and not
// NotFound, for most of those.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
