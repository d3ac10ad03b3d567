package objects

import (
	"context"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Memberships writes the Memberships of Organizations. A cluster is that of an
// Organization's workspace.
type Memberships struct{ Clients *kcp.Clients }

// List reads all Memberships of an Organization from kcp itself.
func (m Memberships) List(ctx context.Context, cluster string) ([]v1alpha1.Membership, error) {
	list, err := List(ctx, m.Clients.Memberships(cluster), "memberships", &v1alpha1.MembershipList{})
	return list.Items, err
}

// Create creates a Membership, which may exist already.
func (m Memberships) Create(ctx context.Context, cluster string, o *v1alpha1.Membership) error {
	return Create(ctx, m.Clients.Memberships(cluster), o)
}

// Delete deletes just this version of a Membership.
func (m Memberships) Delete(ctx context.Context, cluster string, o *v1alpha1.Membership) error {
	return DeleteUnchanged(ctx, m.Clients.Memberships(cluster), o)
}

// SetRole changes the role of just this version of a Membership.
func (m Memberships) SetRole(ctx context.Context, cluster string, o *v1alpha1.Membership, role v1alpha1.Role) error {
	return Merge(ctx, m.Clients.Memberships(cluster), o, map[string]any{"spec": map[string]any{"role": role}})
}

// Set changes what just this version of a Membership gives.
func (m Memberships) Set(ctx context.Context, cluster string, o *v1alpha1.Membership, c v1alpha1.MembershipChange) error {
	return Merge(ctx, m.Clients.Memberships(cluster), o, map[string]any{"spec": map[string]any{"role": c.Role, "roles": c.Roles, "sudo": c.Sudo}})
}

// Bots reads and writes the Bots of Organizations.
type Bots struct{ Clients *kcp.Clients }

// List reads all Bots of an Organization from kcp itself.
func (b Bots) List(ctx context.Context, cluster string) ([]v1alpha1.Bot, error) {
	list, err := List(ctx, b.Clients.Bots(cluster), "bots", &v1alpha1.BotList{})
	return list.Items, err
}

// Delete deletes a Bot, in whatever version.
func (b Bots) Delete(ctx context.Context, cluster string, o *v1alpha1.Bot) error {
	return Delete(ctx, b.Clients.Bots(cluster), o)
}

// Change carries out an accepted change. It does nothing to a Bot that was changed otherwise since.
func (b Bots) Change(ctx context.Context, cluster string, c v1alpha1.BotChange) error {
	client := b.Clients.Bots(cluster)
	if c.UID == "" {
		return Create(ctx, client, tenancy.ChangedBot(nil, c))
	}
	held, ok, err := Find(ctx, client, c.Name)
	if err != nil || !ok || !tenancy.BotChangeApplies(c, held) {
		return err
	}
	want := tenancy.ChangedBot(held, c)
	return Merge(ctx, client, held, map[string]any{"spec": map[string]any{"role": want.Spec.Role, "displayName": want.Spec.DisplayName}})
}

// RemoveCatalogEntries deletes all CatalogEntries of the client's cluster and returns how many
// there are still.
func RemoveCatalogEntries(ctx context.Context, client *kcp.Client[*v1alpha1.CatalogEntry]) (left int, err error) {
	newList := func() *v1alpha1.CatalogEntryList { return &v1alpha1.CatalogEntryList{} }
	err = Each(ctx, client, "catalogentries", "", newList, func(page *v1alpha1.CatalogEntryList) error {
		for i := range page.Items {
			left++
			if e := &page.Items[i]; e.DeletionTimestamp.IsZero() {
				if err := Delete(ctx, client, e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return left, err
}

// CreateWorkspace creates a child Workspace, which may exist already.
func CreateWorkspace(ctx context.Context, clients *kcp.Clients, tree tenancy.Tree, orgCluster string, w tenancy.Workspace) error {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Labels = w.UUID, w.Labels
	ws.Finalizers = []string{v1alpha1.CascadeFinalizer}
	ws.Annotations = map[string]string{
		v1alpha1.DisplayNameAnnotation: w.DisplayName,
		v1alpha1.CreatedByAnnotation:   w.CreatedBy,
	}
	ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeWorkspace, Path: tree.Root()}
	return Create(ctx, clients.Workspaces(orgCluster), ws)
}
