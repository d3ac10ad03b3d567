package store_test

import (
	"context"
	"net/http"
	"testing"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const acmeUUID = "aaaaaaaa-0000-4000-8000-000000000001"

func widgetsEntry(org, by string) *v1alpha1.CatalogEntry {
	return tenancy.NewCatalogEntry(org, v1alpha1.CatalogEntrySpec{
		Slug: "widgets", DisplayName: "Widgets", APIExport: v1alpha1.APIExportRef{Path: "root:kedge:providers:acme", Name: "widgets"},
	}, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: by, UID: types.UID("uid-" + by)}}, "")
}

func TestCreateCatalogEntry_returnsTheExistingOne(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	e, made, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
	require.NoError(t, err)
	require.True(t, made)
	held, made, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "bob"))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, e.UID, held.UID)
	require.Equal(t, "alice", held.Annotations[v1alpha1.CreatedByAnnotation], "as it was")
}

// Of two who publish a slug at once while a third has it elsewhere, one finds the entry of the other, which is taken back.
func TestCreateCatalogEntry_passesOneThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for gone, made := range map[int]bool{1: true, 4: true, 5: false} {
		s := newServer(t)
		other := widgetsEntry(acmeUUID, "bob")
		left, creates := gone, 0
		s.before = func(method string) {
			switch {
			case method == http.MethodPost && left > 0:
				creates++
				s.Put("org1", other.DeepCopy())
			case method == http.MethodGet && left > 0:
				left--
				s.Remove("org1", other.DeepCopy())
			}
		}
		e, own, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
		require.Equal(t, made, own)
		require.Equal(t, gone, creates)
		if !made {
			require.True(t, errs.Is(err, errs.AlreadyExists), "%v", err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "alice", e.Annotations[v1alpha1.CreatedByAnnotation])
	}
}

func TestCreateCatalogEntry_knowsItsOwnAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for by, own := range map[string]bool{"alice": true, "bob": false} {
		s := newServer(t)
		first := true
		s.lose = func(method string) bool { defer func() { first = false }(); return first && method == http.MethodPost }
		if !own {
			_, _, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
			require.NoError(t, err)
			first = true
		}
		_, made, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, by))
		require.NoError(t, err)
		require.Equal(t, own, made, by)
	}
}

func TestChangeCatalogEntry_changesItsSpec(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	e, _, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
	require.NoError(t, err)
	rename := func(_ context.Context, e *v1alpha1.CatalogEntry) error {
		e.Spec.DisplayName = "Gadgets"
		return nil
	}
	refused := func(string) error { return errs.New(errs.PreconditionFailed, "changed") }
	_, err = s.store().ChangeCatalogEntry(t.Context(), e, refused, rename)
	require.True(t, errs.Is(err, errs.PreconditionFailed))
	changed, err := s.store().ChangeCatalogEntry(t.Context(), e, nil, rename)
	require.NoError(t, err)
	require.Equal(t, "Gadgets", changed.Spec.DisplayName)
	other := changed.DeepCopy()
	other.UID = "of another entry"
	for _, match := range []func(string) error{nil, func(string) error { return nil }} {
		other.ResourceVersion = "1"
		_, err = s.store().ChangeCatalogEntry(t.Context(), other, match, rename)
		require.True(t, errs.Is(err, errs.NotFound), "%v", err)
	}
}

func TestDeleteCatalogEntry_deletesNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	e, _, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
	require.NoError(t, err)
	other := e.DeepCopy()
	other.UID = "of another entry"
	require.Error(t, s.store().DeleteCatalogEntry(t.Context(), other, nil))
	require.True(t, errs.Is(s.store().DeleteCatalogEntry(t.Context(), e, func(string) error { return errs.New(errs.PreconditionFailed, "changed") }), errs.PreconditionFailed))
	lost := true
	s.lose = func(method string) bool { defer func() { lost = false }(); return lost && method == http.MethodDelete }
	require.NoError(t, s.store().DeleteCatalogEntry(t.Context(), e, nil), "its answer is lost once")
	require.True(t, errs.Is(s.store().DeleteCatalogEntry(t.Context(), e, nil), errs.NotFound))
}

func TestCountCatalogEntries_countsThoseOfOnePlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for cluster, n := range map[string]int{"org1": 3, "org2": 1} {
		for i := range n {
			e := widgetsEntry(acmeUUID, "alice")
			e.Name = uuid(i)
			_, _, err := s.store().CreateCatalogEntry(t.Context(), cluster, e)
			require.NoError(t, err)
		}
	}
	for cluster, want := range map[string]int64{"org1": 3, "org2": 1, "org3": 0} {
		n, err := s.store().CountCatalogEntries(t.Context(), cluster)
		require.NoError(t, err)
		require.Equal(t, want, n, cluster)
	}
	s.refuse = func(string) *apierrors.StatusError { return apierrors.NewInternalError(context.Canceled) }
	_, err := s.store().CountCatalogEntries(t.Context(), "org1")
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}

func TestOthersWithSlug_readsTheOtherPlaces(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	providers := "root:kedge:providers"
	slice := &kcpapisv1alpha1.APIExportEndpointSlice{}
	slice.Name = tenancy.ExportTenancy
	slice.Status.APIExportEndpoints = []kcpapisv1alpha1.APIExportEndpoint{{URL: s.URL()}}
	s.Put(providers, slice)
	global, _, err := s.store().CreateCatalogEntry(t.Context(), providers, widgetsEntry("", "olga"))
	require.NoError(t, err)
	own, _, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
	require.NoError(t, err)
	other := widgetsEntry(acmeUUID, "alice")
	other.Spec.Slug = "gadgets"
	other.Name, other.Labels[v1alpha1.CatalogSlugLabel] = tenancy.CatalogEntryName(acmeUUID, "gadgets"), tenancy.SlugHash("gadgets")
	other, _, err = s.store().CreateCatalogEntry(t.Context(), "org1", other)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		e          *v1alpha1.CatalogEntry
		everywhere bool
		clusters   []string
	}{
		"for an Organization":              {own, false, []string{providers}},
		"for an Organization, another one": {other, false, nil},
		"for everybody":                    {global, true, []string{"org1"}},
	} {
		clusters, err := s.store().OthersWithSlug(t.Context(), c.e, c.everywhere)
		require.NoError(t, err, name)
		require.Equal(t, c.clusters, clusters, name)
	}
	s.refuse = func(string) *apierrors.StatusError { return apierrors.NewInternalError(context.Canceled) }
	_, err = s.store().OthersWithSlug(t.Context(), own, false)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}

// A tenant whose entry waits for its finalizers deletes it for ever: each time kcp would be written to, and the audit log.
func TestDeleteCatalogEntry_isAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	e, _, err := s.store().CreateCatalogEntry(t.Context(), "org1", widgetsEntry(acmeUUID, "alice"))
	require.NoError(t, err)
	deletions := 0
	s.lose = func(method string) bool {
		if method == http.MethodDelete {
			deletions++
		}
		return false
	}
	now := metav1.Now()
	e.DeletionTimestamp = &now
	require.NoError(t, s.store().DeleteCatalogEntry(t.Context(), e, nil))
	require.Zero(t, deletions)
	e.DeletionTimestamp = nil
	require.NoError(t, s.store().DeleteCatalogEntry(t.Context(), e, nil))
	require.Equal(t, 1, deletions)
}
