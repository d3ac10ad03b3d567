package organization

import (
	"context"
	"fmt"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// cascade removes the content of an Organization that is being deleted, children before
// parents: child Workspaces and CatalogEntries, Memberships, the Organization's kcp
// Workspace. Then it removes the finalizer. It lists in kcp itself and can be interrupted anywhere.
type cascade struct {
	workspaces  workspaces
	memberships objects.Memberships
	entries     objects.Repository[*v1alpha1.CatalogEntry]
	clusters    Clusters
	purged      func(ctx context.Context, org *v1alpha1.Organization, counts map[string]int)
	// reported prevents a second call of purged after the removal of the finalizer failed.
	reported controller.Once
}

func (s *cascade) reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	if !controller.HasFinalizer(org) {
		return controller.Result{Stop: true}, nil
	}
	own, ok, err := s.workspaces.Find(ctx, s.workspaces.cluster, org.Name)
	if err != nil {
		return controller.Result{}, err
	}
	if ok && own.DeletionTimestamp.IsZero() && own.Spec.Cluster != "" {
		message, err := s.empty(ctx, org, own.Spec.Cluster)
		if err != nil || message != "" {
			return controller.Result{Message: message, Stop: true}, err
		}
	}
	if ok {
		if own.DeletionTimestamp.IsZero() {
			err = s.remove(ctx, s.workspaces.cluster, own)
		}
		return controller.Result{Message: "kcp is removing the organization's workspace", Stop: true}, err
	}
	counts, _ := controller.Recorded(org)
	s.reported.Do(org.UID, func() { s.purged(ctx, org, counts) })
	controller.RemoveFinalizer(org)
	return controller.Result{Message: "all of it is removed", Stop: true}, nil
}

// empty removes the content of the Organization's workspace and says what is left.
func (s *cascade) empty(ctx context.Context, org *v1alpha1.Organization, cluster string) (message string, err error) {
	// The hub cannot list and delete in a cluster that is active for kcp's own controllers alone: both need the
	// phase Ready.
	if err := s.clusters.Activate(ctx, cluster); err != nil {
		return "", err
	}
	workspaces, err := s.workspaces.List(ctx, cluster)
	if err != nil {
		return "", err
	}
	memberships, err := s.memberships.List(ctx, cluster)
	if err != nil {
		return "", err
	}
	if _, ok := controller.Recorded(org); !ok {
		return "its content is being removed", controller.Record(org, map[string]int{"workspaces": owned(workspaces), "memberships": len(memberships)})
	}
	for _, ws := range workspaces {
		if ws.DeletionTimestamp.IsZero() {
			if err := s.remove(ctx, cluster, ws); err != nil {
				return "", err
			}
		}
	}
	entries, err := s.removeEntries(ctx, cluster)
	switch {
	case err != nil:
		return "", err
	case len(workspaces) > 0:
		return fmt.Sprintf("%d workspaces are being removed", len(workspaces)), nil
	case entries > 0:
		return fmt.Sprintf("%d catalog entries are being removed", entries), nil
	}
	for _, m := range memberships {
		if err := s.memberships.DeleteUnchanged(ctx, cluster, m); err != nil {
			return "", err
		}
	}
	return "", nil
}

// remove deletes any version of a Workspace and lets kcp delete its content.
func (s *cascade) remove(ctx context.Context, cluster string, ws *kcptenancyv1alpha1.Workspace) error {
	if err := s.workspaces.Delete(ctx, cluster, ws); err != nil || ws.Spec.Cluster == "" {
		return err
	}
	return s.clusters.ActivateForDeletion(ctx, ws.Spec.Cluster)
}

// removeEntries deletes the CatalogEntries in a cluster and returns how many are left.
func (s *cascade) removeEntries(ctx context.Context, cluster string) (left int, err error) {
	err = s.entries.Each(ctx, cluster, "", func(e *v1alpha1.CatalogEntry) error {
		left++
		if !e.DeletionTimestamp.IsZero() {
			return nil
		}
		return s.entries.Delete(ctx, cluster, e)
	})
	return left, err
}

// owned counts the Workspaces that are not spares.
func owned(workspaces []*kcptenancyv1alpha1.Workspace) (n int) {
	for _, ws := range workspaces {
		if !tenancy.IsSpare(ws) {
			n++
		}
	}
	return n
}
