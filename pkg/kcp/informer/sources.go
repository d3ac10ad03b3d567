package informer

import (
	"context"
	"fmt"
	"strings"

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

// one selects the object of a name since a resource version.
func one(name, version string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(), ResourceVersion: version}
}

// exportSource has the virtual workspaces of an APIExport, which its APIExportEndpointSlice names.
func exportSource(c *kcp.Clients, cluster, export string) source {
	slices := c.EndpointSlices(cluster)
	return source{
		name: "APIExportEndpointSlice " + export,
		get: func(ctx context.Context) (urls []string, version string, err error) {
			slice, err := slices.Get(ctx, export, metav1.GetOptions{})
			if err != nil {
				return nil, "", fmt.Errorf("get the endpoints of %s: %w", export, err)
			}
			for _, endpoint := range slice.Status.APIExportEndpoints {
				urls = append(urls, endpoint.URL)
			}
			return urls, slice.ResourceVersion, nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			return slices.Watch(ctx, one(export, version))
		},
	}
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
	types := c.WorkspaceTypes(cluster)
	return source{
		name: "WorkspaceType " + name,
		get: func(ctx context.Context) ([]string, string, error) {
			t, err := types.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, "", fmt.Errorf("get the workspace type %s: %w", name, err)
			}
			return InitializingURLs(t), t.ResourceVersion, nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			return types.Watch(ctx, one(name, version))
		},
	}
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
