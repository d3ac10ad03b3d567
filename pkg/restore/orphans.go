package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Orphan is a logical cluster without a Workspace. The snapshot of its shard is younger than that of the shard that has the
// Workspace, which was made in between.
type Orphan struct {
	Path    string `json:"path"`
	Cluster string `json:"cluster,omitempty"`
	// Open says why kcp may still serve it. It is empty if kcp refuses everybody there.
	Open string `json:"open,omitempty"`
}

// Orphans closes the logical clusters without a Workspace. No Step ends a right there, because the hub does not know them, and
// kcp itself lets in all who had one at the time of the snapshot.
type Orphans struct {
	Tree tenancy.Tree
	// List returns all logical clusters of kcp.
	List func(ctx context.Context) ([]*kcpcorev1alpha1.LogicalCluster, error)
	// Cached finds a Workspace in the cache. Read asks kcp for one that the cache does not have.
	Cached func(cluster, name string) (*kcptenancyv1alpha1.Workspace, bool)
	Read   func(ctx context.Context, cluster, name string) (*kcptenancyv1alpha1.Workspace, error)
	// Deactivate has kcp refuse everybody in a logical cluster.
	Deactivate func(ctx context.Context, cluster string) error
}

// Close deactivates all Orphans, and returns them by path. An error is one that can pass: the Orphans that come with it say
// which of them are open still. What kcp refuses for good is no error.
func (o Orphans) Close(ctx context.Context) ([]Orphan, error) {
	found, err := o.find(ctx)
	if err != nil {
		unknown := []Orphan{{Path: o.Tree.Orgs(), Open: fmt.Sprintf("it is not known whether all below has a Workspace: %v", err)}}
		return unknown, passing(err)
	}
	var failures []error
	closed := make([]Orphan, 0, len(found))
	for cluster, path := range found {
		of := Orphan{Path: path, Cluster: cluster}
		if err := o.Deactivate(ctx, cluster); err != nil {
			of.Open = err.Error()
			if err := passing(err); err != nil {
				failures = append(failures, fmt.Errorf("deactivate the logical cluster %s: %w", cluster, err))
			}
		}
		closed = append(closed, of)
	}
	slices.SortFunc(closed, func(a, b Orphan) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Cluster, b.Cluster)) })
	return closed, errors.Join(failures...)
}

// passing returns nil for an error with which the hub lacks a right, or room. kcp answers NotFound to those who may not list.
func passing(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || errs.Is(err, errs.Forbidden) || errs.Is(err, errs.TooLarge) {
		return nil
	}
	return err
}

// find returns the paths of Orphans by logical cluster. What is in an Orphan is one, too.
func (o Orphans) find(ctx context.Context) (map[string]string, error) {
	all, err := o.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the logical clusters: %w", err)
	}
	found := map[string]string{}
	for before := -1; before < len(found); {
		before = len(found)
		for _, lc := range all {
			cluster := string(logicalcluster.From(lc))
			if found[cluster] != "" || !o.Tree.HoldsTenant(lc) || !lc.DeletionTimestamp.IsZero() {
				continue
			}
			has := false
			if found[lc.Spec.Owner.Cluster] == "" {
				if has, err = o.hasWorkspace(ctx, lc); err != nil {
					return nil, err
				}
			}
			if !has {
				found[cluster] = lc.Annotations[core.LogicalClusterPathAnnotationKey]
			}
		}
	}
	return found, nil
}

func (o Orphans) hasWorkspace(ctx context.Context, lc *kcpcorev1alpha1.LogicalCluster) (bool, error) {
	owner := lc.Spec.Owner
	if ws, ok := o.Cached(owner.Cluster, owner.Name); ok {
		return tenancy.HasWorkspace(lc, ws), nil
	}
	// The controllers make Workspaces meanwhile, and the cache lags. kcp refuses reads in what is deactivated, or gone:
	// nothing is made there.
	ws, err := o.Read(ctx, owner.Cluster, owner.Name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the Workspace %s: %w", owner.Name, err)
	}
	return tenancy.HasWorkspace(lc, ws), nil
}
