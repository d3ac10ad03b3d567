package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Clusters are the IDs of the logical clusters of the tree.
type Clusters struct {
	Root, Users, Providers, Orgs string
	// Initializer is the name of the initializer in the status of a Workspace.
	Initializer string
	// OrgBindings and WorkspaceBindings are the APIBindings that the WorkspaceTypes create
	// in the workspace of each Organization and in each child Workspace. Their names are
	// those of bindings that the hub recreates.
	OrgBindings, WorkspaceBindings []*kcpapisv1alpha2.APIBinding
	// WorkspacePolicy is the admission policy of every child Workspace.
	WorkspacePolicy tenancy.Policy
}

// IDs are the logical clusters that tenants must not access (O-10), kcp's root included.
func (c Clusters) IDs() []string { return []string{"root", c.Root, c.Users, c.Providers, c.Orgs} }

// poll is the interval at which a step checks kcp.
const poll = 50 * time.Millisecond

// Run creates the tree and returns its logical clusters. It retries after errors until ctx ends.
func Run(ctx context.Context, clients *kcp.Clients, tree tenancy.Tree) (Clusters, error) {
	b := &bootstrapper{clients: clients, tree: tree}
	err := retry(ctx, "create the tree under "+tree.Root(), func() error { return b.run(ctx) })
	return b.clusters, err
}

// retry calls f until it succeeds or ctx ends. what describes f, as an infinitive.
func retry(ctx context.Context, what string, f func() error) error {
	delay := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 12, Cap: 5 * time.Second}
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			log.From(ctx).Warn("cannot "+what+" yet; trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(delay.Step()):
		}
	}
}

// Find returns the logical clusters of a tree that exists, and writes nothing.
func Find(ctx context.Context, clients *kcp.Clients, tree tenancy.Tree) (Clusters, error) {
	b := &bootstrapper{clients: clients, tree: tree}
	for path, id := range map[string]*string{
		tree.Root(): &b.clusters.Root, tree.Users(): &b.clusters.Users, tree.Providers(): &b.clusters.Providers, tree.Orgs(): &b.clusters.Orgs,
	} {
		at := strings.LastIndex(path, ":")
		ws, err := clients.Workspaces(path[:at]).Get(ctx, path[at+1:], metav1.GetOptions{})
		if err != nil {
			return Clusters{}, fmt.Errorf("find the workspace %s: %w", path, err)
		}
		*id = ws.Spec.Cluster
	}
	v, err := b.identity(ctx)
	if err != nil {
		return Clusters{}, err
	}
	return b.clusters, b.named(v)
}

type bootstrapper struct {
	clients  *kcp.Clients
	tree     tenancy.Tree
	clusters Clusters
	// chosenSchemas are those that the export has.
	chosenSchemas []*kcpapisv1alpha1.APIResourceSchema
}

// named sets what follows from the IDs of the logical clusters.
func (b *bootstrapper) named(v values) (err error) {
	b.clusters.Initializer = b.clusters.Root + ":" + tenancy.TypeOrganization
	if b.clusters.OrgBindings, err = orgBindings(v, b.clusters.Providers); err != nil {
		return err
	}
	b.clusters.WorkspaceBindings, err = bindings("binding-access.yaml", v, b.clusters.Providers)
	return err
}

func (b *bootstrapper) run(ctx context.Context) error {
	path := "root"
	for _, name := range strings.Split(b.tree.Root(), ":")[1:] {
		id, err := b.workspace(ctx, path, name)
		if err != nil {
			return err
		}
		path, b.clusters.Root = path+":"+name, id
	}
	children, inner := errgroup.WithContext(ctx)
	for name, id := range map[string]*string{"users": &b.clusters.Users, "providers": &b.clusters.Providers, "orgs": &b.clusters.Orgs} {
		children.Go(func() (err error) {
			*id, err = b.workspace(inner, b.tree.Root(), name)
			return err
		})
	}
	if err := children.Wait(); err != nil {
		return err
	}
	values, err := b.values(ctx)
	if err != nil {
		return err
	}
	if err := b.named(values); err != nil {
		return err
	}
	if err := b.apply(ctx, b.clusters.Providers, values, "exports.yaml"); err != nil {
		return err
	}
	// The first write to each logical cluster after the start of kcp takes most of a second,
	// so these run in parallel.
	bindings, inner := errgroup.WithContext(ctx)
	for _, cluster := range []string{b.clusters.Users, b.clusters.Orgs, b.clusters.Providers} {
		bindings.Go(func() error {
			if err := b.apply(inner, cluster, values, "binding-tenancy.yaml"); err != nil {
				return err
			}
			if cluster == b.clusters.Providers {
				if err := b.apply(inner, cluster, values, "binding-access.yaml"); err != nil {
					return err
				}
			}
			return b.bound(inner, cluster)
		})
	}
	bindings.Go(func() error {
		if err := b.apply(inner, b.clusters.Root, values, "types.yaml"); err != nil {
			return err
		}
		return b.initializer(inner)
	})
	if err := bindings.Wait(); err != nil {
		return err
	}
	return b.follows(ctx)
}

// workspace creates a workspace of type universal below parent and waits until it is ready. It is
// put on kcp's root shard, without which the front proxy finds no workspace: with the tree on
// another shard, the hub would depend on two.
func (b *bootstrapper) workspace(ctx context.Context, parent, name string) (id string, err error) {
	client := b.clients.Workspaces(parent)
	err = wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(ctx context.Context) (bool, error) {
		ws, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			ws = &kcptenancyv1alpha1.Workspace{}
			ws.Name = name
			ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"}
			ws.Spec.Location = &kcptenancyv1alpha1.WorkspaceLocation{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": kcpcorev1alpha1.RootShard}}}
			_, err = client.Create(ctx, ws, metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				return false, nil
			}
		}
		if err != nil {
			return false, err
		}
		id = ws.Spec.Cluster
		return ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady && id != "", nil
	})
	if err != nil {
		return "", fmt.Errorf("workspace %s:%s: %w", parent, name, err)
	}
	return id, nil
}

// bound waits until the bindings in a workspace of the hub are bound, to the schemas of the export.
func (b *bootstrapper) bound(ctx context.Context, cluster string) error {
	names := []string{tenancy.ExportTenancy}
	if cluster == b.clusters.Providers {
		names = append(names, tenancy.ExportAccess)
	}
	client := b.clients.APIBindings(cluster)
	for _, name := range names {
		err := wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(ctx context.Context) (bool, error) {
			binding, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return binding.Status.Phase == kcpapisv1alpha2.APIBindingPhaseBound && (name != tenancy.ExportTenancy || b.binds(binding)), nil
		})
		if err != nil {
			return fmt.Errorf("binding %s in %s: %w", name, cluster, err)
		}
	}
	return nil
}

// binds reports whether a binding has the schemas of the export. Until it has, kcp prunes the fields that are new.
func (b *bootstrapper) binds(binding *kcpapisv1alpha2.APIBinding) bool {
	bound := map[string]bool{}
	for _, r := range binding.Status.BoundResources {
		bound[r.Schema.Name] = true
	}
	return !slices.ContainsFunc(b.chosenSchemas, func(s *kcpapisv1alpha1.APIResourceSchema) bool { return !bound[s.Name] })
}

func (b *bootstrapper) initializer(ctx context.Context) error {
	client := b.clients.WorkspaceTypes(b.clusters.Root)
	return wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, func(ctx context.Context) (bool, error) {
		t, err := client.Get(ctx, tenancy.TypeOrganization, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("workspace type %s: %w", tenancy.TypeOrganization, err)
		}
		return len(informer.InitializingURLs(t)) > 0, nil
	})
}
