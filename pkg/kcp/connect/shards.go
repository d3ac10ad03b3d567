package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// shardURLs are the base URLs of the shards of kcp.
func shardURLs(ctx context.Context, clients *kcp.Clients) ([]string, error) {
	shards, err := clients.ListShards(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the shards of kcp: %w", err)
	}
	urls := make([]string, 0, len(shards.Items))
	for _, shard := range shards.Items {
		urls = append(urls, strings.TrimSuffix(shard.Spec.BaseURL, "/"))
	}
	return urls, nil
}

// isShard reports whether a base URL is that of a shard of kcp.
func isShard(ctx context.Context, clients *kcp.Clients, base string) (bool, error) {
	urls, err := shardURLs(ctx, clients)
	for _, url := range urls {
		if url == base {
			return true, nil
		}
	}
	return false, err
}

// NewLocate returns the func that finds the base URL of the shard of a logical cluster. It asks
// every shard with the credential of kcp's shard admin: nobody else can read a deactivated logical
// cluster. clients may list Shards. The error is NotFound if no shard has the logical cluster; if
// one does not answer, it is that shard's.
func NewLocate(clients, admin *kcp.Clients) func(ctx context.Context, cluster string) (base string, err error) {
	return func(ctx context.Context, cluster string) (string, error) {
		urls, err := shardURLs(ctx, clients)
		if err != nil {
			return "", err
		}
		var failures []error
		for _, url := range urls {
			_, err := admin.LogicalClusters(url+"/clusters/"+cluster).Get(ctx, kcpcorev1alpha1.LogicalClusterName, metav1.GetOptions{})
			switch {
			case err == nil:
				return url, nil
			case !apierrors.IsNotFound(err):
				failures = append(failures, fmt.Errorf("ask the shard %s for the logical cluster %s: %w", url, cluster, err))
			}
		}
		if len(failures) > 0 {
			return "", errors.Join(failures...)
		}
		return "", apierrors.NewNotFound(kcpcorev1alpha1.Resource("logicalclusters"), cluster)
	}
}
