package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxChanges is the number of times that a change is tried while others change the same.
const maxChanges = 10

// RootAnnotation returns an annotation of the root workspace of a tree, empty if there is none.
func RootAnnotation(ctx context.Context, clients *kcp.Clients, tree tenancy.Tree, name string) (string, error) {
	client, root := rootOf(clients, tree)
	ws, err := client.Get(ctx, root, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the root workspace: %w", err)
	}
	return ws.Annotations[name], nil
}

// ChangeRootAnnotation changes an annotation of the root workspace of a tree by compare and swap: change gets what is there.
func ChangeRootAnnotation(ctx context.Context, clients *kcp.Clients, tree tenancy.Tree, name string, change func(held string) (string, error)) error {
	client, root := rootOf(clients, tree)
	for try := 1; ; try++ {
		ws, err := client.Get(ctx, root, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the root workspace: %w", err)
		}
		text, err := change(ws.Annotations[name])
		if err != nil || text == ws.Annotations[name] {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": ws.ResourceVersion, "annotations": map[string]string{name: text},
		}})
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, root, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err) || try == maxChanges:
			return fmt.Errorf("annotate the root workspace: %w", err)
		}
	}
}

// RootCluster returns the logical cluster of the root workspace of a tree that exists.
func RootCluster(ctx context.Context, clients *kcp.Clients, tree tenancy.Tree) (string, error) {
	client, root := rootOf(clients, tree)
	ws, err := client.Get(ctx, root, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the root workspace: %w", err)
	}
	if ws.Spec.Cluster == "" {
		return "", fmt.Errorf("the workspace %s is not made yet", tree.Root())
	}
	return ws.Spec.Cluster, nil
}

// rootOf returns the client of the root workspace, which is an object in the workspace above it, and its name there.
func rootOf(clients *kcp.Clients, tree tenancy.Tree) (client *kcp.Client[*kcptenancyv1alpha1.Workspace], name string) {
	path := tree.Root()
	at := strings.LastIndex(path, ":")
	return clients.Workspaces(path[:at]), path[at+1:]
}
