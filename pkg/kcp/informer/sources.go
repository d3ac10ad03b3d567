package informer

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// source names the endpoints of a kcp.
type source struct {
	// name is what names them, for messages.
	name string
	// get returns the URLs, and the resource version that they had.
	get func(ctx context.Context) (urls []string, version string, err error)
	// watch reports that the URLs may have changed since.
	watch func(ctx context.Context, version string) (watch.Interface, error)
}

// objectSource has the URLs that one object names.
func objectSource[T kcp.Object](objects *kcp.Client[T], name string, urlsOf func(T) []string) source {
	what := reflect.TypeFor[T]().Elem().Name() + " " + name
	return source{
		name: what,
		get: func(ctx context.Context) (urls []string, version string, err error) {
			o, err := objects.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, "", fmt.Errorf("get the endpoints of %s: %w", what, err)
			}
			return urlsOf(o), o.GetResourceVersion(), nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			named := fields.OneTermEqualSelector("metadata.name", name).String()
			return objects.Watch(ctx, metav1.ListOptions{FieldSelector: named, ResourceVersion: version})
		},
	}
}

// exportSource has the virtual workspaces of an APIExport, which its APIExportEndpointSlice names.
func exportSource(c *kcp.Clients, cluster, export string) source {
	return objectSource(c.EndpointSlices(cluster), export, func(s *kcpapisv1alpha1.APIExportEndpointSlice) (urls []string) {
		for _, endpoint := range s.Status.APIExportEndpoints {
			urls = append(urls, endpoint.URL)
		}
		return urls
	})
}

// InitializingURLs are the virtual workspaces of the initializer of a WorkspaceType, one per shard.
func InitializingURLs(t *kcptenancyv1alpha1.WorkspaceType) (urls []string) {
	for _, vw := range t.Status.VirtualWorkspaces {
		if strings.Contains(vw.URL, "/services/initializingworkspaces/") {
			urls = append(urls, vw.URL)
		}
	}
	return urls
}

func initializerSource(c *kcp.Clients, cluster, name string) source {
	return objectSource(c.WorkspaceTypes(cluster), name, InitializingURLs)
}

func shardSource(c *kcp.Clients) source {
	shards := c.Shards(kcp.RootCluster)
	return source{
		name: "Shards",
		get: func(ctx context.Context) (urls []string, version string, err error) {
			list, err := c.ListShards(ctx)
			if err != nil {
				return nil, "", fmt.Errorf("list the shards: %w", err)
			}
			for _, shard := range list.Items {
				urls = append(urls, strings.TrimSuffix(shard.Spec.BaseURL, "/"))
			}
			return urls, list.ResourceVersion, nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			return shards.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		},
	}
}
