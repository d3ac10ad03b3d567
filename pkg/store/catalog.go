package store

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const catalogEntry = "catalog entry"

// creations is the number of times that a CatalogEntry is created while others of its name come and go.
const creations = 5

// CreateCatalogEntry creates a CatalogEntry in the logical cluster of an Organization or of the
// providers. If one of that name exists, it returns that one and made is false. One that was made at the
// same time, and was taken back for a third, is none.
func (s *Store) CreateCatalogEntry(ctx context.Context, cluster string, e *v1alpha1.CatalogEntry) (held *v1alpha1.CatalogEntry, made bool, err error) {
	client := s.clients.CatalogEntries(cluster)
	tries := 0
	err = retry(ctx, func(ctx context.Context) error {
		tries++
		var exists error
		for range creations {
			held, exists = client.Create(ctx, e, metav1.CreateOptions{FieldManager: kcp.FieldManager})
			if made = exists == nil; !apierrors.IsAlreadyExists(exists) {
				return exists
			}
			if held, err = client.Get(ctx, e.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return err
			}
		}
		return exists
	})
	// If the answer of the first attempt was lost, the object is the one that was sent.
	if err == nil && !made && tries > 1 {
		by := v1alpha1.CreatedByAnnotation
		made = held.Annotations[by] == e.Annotations[by] && equality.Semantic.DeepEqual(held.Spec, e.Spec)
	}
	return held, made, convert(err, catalogEntry)
}

// CountCatalogEntries counts the CatalogEntries in a logical cluster in kcp, those that are being
// deleted included.
func (s *Store) CountCatalogEntries(ctx context.Context, cluster string) (n int64, err error) {
	client := s.clients.REST(s.clients.ClusterURL(cluster), v1alpha1.SchemeGroupVersion)
	err = retry(ctx, func(ctx context.Context) error {
		n, err = countIn(ctx, client, v1alpha1.SchemeGroupVersion.String(), "catalogentries", tenancy.MaxCatalogEntries+1)
		return err
	})
	return n, convert(err, "number of catalog entries")
}

// DeleteCatalogEntry is DeleteBot for a CatalogEntry.
func (s *Store) DeleteCatalogEntry(ctx context.Context, held *v1alpha1.CatalogEntry, match Match) error {
	return remove(ctx, s.clients.CatalogEntries(kcp.ClusterOf(held)), held, match, catalogEntry)
}

// OthersWithSlug reads from kcp in which logical clusters there are other CatalogEntries with the
// slug of e: Global ones or, if everywhere is set, those of all Organizations, too. It shows what
// another replica wrote before this one reads, which a cache may not have yet. It does not find
// entries that were applied to kcp without the label of the slug.
func (s *Store) OthersWithSlug(ctx context.Context, e *v1alpha1.CatalogEntry, everywhere bool) (clusters []string, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		bases := []string{s.clients.ClusterURL(s.tree.Providers())}
		if everywhere {
			slice, err := s.clients.EndpointSlices(s.tree.Providers()).Get(ctx, tenancy.ExportTenancy, metav1.GetOptions{})
			if err != nil {
				return err
			}
			bases = nil
			for _, endpoint := range slice.Status.APIExportEndpoints {
				bases = append(bases, endpoint.URL+"/clusters/*")
			}
		}
		clusters = nil
		for _, base := range bases {
			var list v1alpha1.CatalogEntryList
			err := s.clients.REST(base, v1alpha1.SchemeGroupVersion).Get().Resource("catalogentries").
				Param("labelSelector", v1alpha1.CatalogSlugLabel+"="+tenancy.SlugHash(e.Spec.Slug)).Do(ctx).Into(&list)
			if err != nil {
				return err
			}
			for i := range list.Items {
				if o := &list.Items[i]; o.UID != e.UID && o.DeletionTimestamp.IsZero() && o.Spec.Slug == e.Spec.Slug {
					clusters = append(clusters, kcp.ClusterOf(o))
				}
			}
		}
		return nil
	})
	return clusters, convert(err, catalogEntry)
}
