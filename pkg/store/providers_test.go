package store_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	hubkcp "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestCountObjects_readsOneOfEachKind(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/clusters/one/apis/example.org":
			_, _ = fmt.Fprint(w, `{"kind":"APIGroup","preferredVersion":{"groupVersion":"example.org/v2","version":"v2"},
				"versions":[{"groupVersion":"example.org/v2","version":"v2"},{"groupVersion":"example.org/v1alpha1","version":"v1alpha1"}]}`)
		case "/clusters/one/apis/example.org/v2/widgets":
			if r.URL.RawQuery == "limit=1" {
				_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","metadata":{"continue":"x","remainingItemCount":41},"items":[{"metadata":{"name":"a"}}]}`)
			}
		case "/clusters/one/apis/example.org/v2/gadgets":
			_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","metadata":{},"items":[]}`)
		case "/clusters/one/apis/example.org/v1alpha1/old":
			_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","metadata":{},"items":[{"metadata":{"name":"a"}}]}`)
		case "/clusters/one/apis/example.org/v2/forbidden":
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		case "/clusters/one/apis/example.org/v2/broken":
			_, _ = fmt.Fprint(w, "[]")
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}))
	t.Cleanup(server.Close)
	clients, err := hubkcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	s := store.New(clients, tenancy.Tree{}, "users", "orgs")
	counts, err := s.CountObjects(t.Context(), "one", []v1alpha1.CatalogResource{
		{Group: "example.org", Resource: "widgets"}, {Group: "example.org", Resource: "gadgets"}, {Group: "gone.org", Resource: "wheels"},
		{Group: "example.org", Resource: "old"}, {Group: "example.org", Resource: "none"},
	})
	require.NoError(t, err)
	require.Equal(t, []tenancy.Loss{
		{Group: "example.org", Resource: "widgets", Count: new(int64(42))}, {Group: "example.org", Resource: "gadgets", Count: new(int64(0))},
		{Group: "gone.org", Resource: "wheels", Count: new(int64(0))},
		{Group: "example.org", Resource: "old", Count: new(int64(1))}, {Group: "example.org", Resource: "none", Count: new(int64(0))},
	}, counts, "a resource may be in an older version of its group only")
	counts, err = s.CountObjects(t.Context(), "one", []v1alpha1.CatalogResource{{Group: "example.org", Resource: "forbidden"}})
	require.NoError(t, err)
	require.Equal(t, []tenancy.Loss{{Group: "example.org", Resource: "forbidden"}}, counts, "a count that is not known is not zero")
	_, err = s.CountObjects(t.Context(), "one", []v1alpha1.CatalogResource{{Group: "example.org", Resource: "broken"}})
	require.Error(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.CountObjects(ended, "one", []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}})
	require.True(t, errs.Is(err, errs.Unavailable), err)
}

func TestGetExport_tellsGoneFromUnavailable(t *testing.T) {
	t.Parallel()
	f := kcpfake.New(t)
	s := store.New(f.Clients().FailFast(), tenancy.Tree{}, "users", "orgs")
	ref := v1alpha1.APIExportRef{Path: "acme", Name: "widgets"}
	export, err := s.GetExport(t.Context(), ref)
	require.NoError(t, err)
	require.Nil(t, export)
	f.Put("acme", &kcpapisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}})
	export, err = s.GetExport(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "widgets", export.Name)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.GetExport(ended, ref)
	require.True(t, errs.Is(err, errs.Unavailable), err)
}
