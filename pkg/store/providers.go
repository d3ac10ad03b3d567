package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxDefinitions is the number of CustomResourceDefinitions of a Workspace that are read.
const maxDefinitions = 1000

// parallelCounts is the number of kinds of one Workspace that are counted at the same time.
const parallelCounts = 8

// GetExport reads an APIExport from kcp. It returns nil if it, or its workspace, does not exist.
func (s *Store) GetExport(ctx context.Context, ref v1alpha1.APIExportRef) (*kcpapisv1alpha2.APIExport, error) {
	var export *kcpapisv1alpha2.APIExport
	err := retry(ctx, func(ctx context.Context) (err error) {
		export, err = s.clients.APIExports(ref.Path).Get(ctx, ref.Name, metav1.GetOptions{})
		return err
	})
	// kcp answers Forbidden for a logical cluster that does not exist.
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return export, convert(err, "API")
}

// WorkspaceAPIs reads from kcp what brings APIs into a logical cluster: its APIBindings, and the
// names of its CustomResourceDefinitions.
func (s *Store) WorkspaceAPIs(ctx context.Context, cluster string) (bindings []*kcpapisv1alpha2.APIBinding, definitions []string, err error) {
	var list kcpapisv1alpha2.APIBindingList
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() error {
		return retry(ctx, func(ctx context.Context) error {
			return s.clients.APIBindings(cluster).GetClient().Get().Resource("apibindings").Do(ctx).Into(&list)
		})
	})
	reads.Go(func() error {
		return retry(ctx, func(ctx context.Context) (err error) {
			definitions, _, err = s.clients.CustomResourceDefinitions(ctx, cluster, maxDefinitions)
			return err
		})
	})
	if err := reads.Wait(); err != nil {
		return nil, nil, convert(err, "workspace")
	}
	for i := range list.Items {
		bindings = append(bindings, &list.Items[i])
	}
	return bindings, definitions, nil
}

// RestoreBinding takes a change of an APIBinding back with the credential of the hub: it deletes b, or
// gives it the spec of before, which is nil if there was none.
func (s *Store) RestoreBinding(ctx context.Context, cluster string, b, before *kcpapisv1alpha2.APIBinding) error {
	own := NewBindings(s.clients)
	if before == nil {
		return own.DeleteBinding(ctx, cluster, b)
	}
	restored := b.DeepCopy()
	restored.Spec = before.Spec
	_, err := own.UpdateBinding(ctx, cluster, restored, false)
	return err
}

// CountObjects counts the objects of these resources in a logical cluster. It reads one object
// of each kind at most. A provider can forbid that with spec.maximalPermissionPolicy of the
// APIExport, which holds for the hub, too: the count is then nil.
func (s *Store) CountObjects(ctx context.Context, cluster string, resources []v1alpha1.CatalogResource) ([]tenancy.Loss, error) {
	counts := make([]tenancy.Loss, len(resources))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelCounts)
	for i, r := range resources {
		reads.Go(func() error {
			return retry(ctx, func(ctx context.Context) error {
				counts[i] = tenancy.Loss{Group: r.Group, Resource: r.Resource}
				n, err := s.count(ctx, cluster, r)
				if apierrors.IsForbidden(err) {
					return nil
				}
				counts[i].Count = &n
				return err
			})
		})
	}
	return counts, convert(reads.Wait(), "number of objects")
}

func (s *Store) count(ctx context.Context, cluster string, r v1alpha1.CatalogResource) (int64, error) {
	client := s.clients.REST(s.clients.ClusterURL(cluster), schema.GroupVersion{Group: r.Group, Version: "v1"})
	raw, err := client.Get().AbsPath("/apis", r.Group).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	var group metav1.APIGroup
	if err == nil {
		err = json.Unmarshal(raw, &group)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the versions of %s: %w", r.Group, err)
	}
	// The preferred version of a group may not have all of its resources.
	for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
		n, err := countIn(ctx, client, version.GroupVersion, r.Resource, 1)
		if !apierrors.IsNotFound(err) {
			return n, err
		}
	}
	return 0, nil
}

// countIn counts the objects of a resource in one version of its group. It reads at most limit of
// them and has kcp count the others. The error is NotFound if that version does not have the
// resource.
func countIn(ctx context.Context, client rest.Interface, version, resource string, limit int) (int64, error) {
	raw, err := client.Get().AbsPath("/apis", version, resource).Param("limit", strconv.Itoa(limit)).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return 0, err
	}
	var list metav1.PartialObjectMetadataList
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return 0, fmt.Errorf("count %s of %s: %w", resource, version, err)
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	}
	return n, nil
}
