package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Objects are the repositories of the kinds that controllers write.
type Objects struct {
	Users         Repository[*v1alpha1.User]
	Organizations Repository[*v1alpha1.Organization]
	Memberships   Memberships
	Indexes       Repository[*v1alpha1.UserMembershipIndex]
	Bots          Bots
	Invitations   Invitations
	Requests      Requests
	Sessions      Repository[*v1alpha1.Session]
	Entries       Repository[*v1alpha1.CatalogEntry]
	// Workspaces are those of Organizations and child Workspaces.
	Workspaces Workspaces
	Bindings   Repository[*kcpapisv1alpha2.APIBinding]
	// Accounts and Secrets are those in the default namespace; the cache has those of Bots.
	Accounts Repository[*corev1.ServiceAccount]
	Secrets  Repository[*corev1.Secret]
	RBAC     RBAC
}

// Caches are what the repositories read from.
type Caches struct {
	Users               Cache[*v1alpha1.User]
	Organizations       Cache[*v1alpha1.Organization]
	Memberships         Cache[*v1alpha1.Membership]
	Indexes             Cache[*v1alpha1.UserMembershipIndex]
	Bots                Cache[*v1alpha1.Bot]
	Invitations         Cache[*v1alpha1.Invitation]
	AccessRequests      Cache[*v1alpha1.AccessRequest]
	Sessions            Cache[*v1alpha1.Session]
	CatalogEntries      Cache[*v1alpha1.CatalogEntry]
	Workspaces          Cache[*kcptenancyv1alpha1.Workspace]
	Bindings            Cache[*kcpapisv1alpha2.APIBinding]
	ServiceAccounts     Cache[*corev1.ServiceAccount]
	BotSecrets          Cache[*corev1.Secret]
	ClusterRoles        Cache[*rbacv1.ClusterRole]
	ClusterRoleBindings Cache[*rbacv1.ClusterRoleBinding]
	RoleBindings        Cache[*rbacv1.RoleBinding]
}

// New returns the repositories.
func New(clients *kcp.Clients, cached Caches, tree tenancy.Tree) Objects {
	return Objects{
		Users:         Of("users", clients.Users, cached.Users),
		Organizations: Of("organizations", clients.Organizations, cached.Organizations),
		Memberships:   Memberships{Of("memberships", clients.Memberships, cached.Memberships)},
		Indexes:       Of("usermembershipindexes", clients.Indexes, cached.Indexes),
		Bots:          Bots{Of("bots", clients.Bots, cached.Bots)},
		Invitations:   Invitations{Of("invitations", clients.Invitations, cached.Invitations)},
		Requests:      Requests{Of("accessrequests", clients.AccessRequests, cached.AccessRequests)},
		Sessions:      Of("sessions", clients.Sessions, cached.Sessions),
		Entries:       Of("catalogentries", clients.CatalogEntries, cached.CatalogEntries),
		Workspaces:    Workspaces{Of("workspaces", clients.Workspaces, cached.Workspaces), tree},
		Bindings:      Of("apibindings", clients.APIBindings, cached.Bindings),
		Accounts: Of("serviceaccounts", func(cluster string) *kcp.Client[*corev1.ServiceAccount] {
			return clients.ServiceAccounts(cluster, tenancy.DefaultNamespace)
		}, cached.ServiceAccounts),
		Secrets: Of("secrets", func(cluster string) *kcp.Client[*corev1.Secret] {
			return clients.Secrets(cluster, tenancy.DefaultNamespace)
		}, cached.BotSecrets),
		RBAC: newRBAC(clients, cached),
	}
}

// Memberships are the Memberships of Organizations. A cluster is that of an Organization's workspace.
type Memberships struct {
	Repository[*v1alpha1.Membership]
}

// Promote makes an admin without an end of just this version of a Membership.
func (m Memberships) Promote(ctx context.Context, cluster string, o *v1alpha1.Membership) error {
	return m.Merge(ctx, cluster, o, map[string]any{"spec": map[string]any{"role": v1alpha1.RoleAdmin, "expiresAt": nil}})
}

// Set changes what just this version of a Membership gives.
func (m Memberships) Set(ctx context.Context, cluster string, o *v1alpha1.Membership, c v1alpha1.MembershipChange) error {
	var role any
	if c.Role != "" {
		role = c.Role
	}
	spec := map[string]any{"role": role, "manager": c.Manager, "roles": c.Roles, "sudo": c.Sudo, "expiresAt": c.ExpiresAt}
	switch {
	case len(c.Extra) > 0:
		spec["extra"] = c.Extra
	case len(o.Spec.Extra) > 0:
		spec["extra"] = nil
	}
	return m.Merge(ctx, cluster, o, map[string]any{"spec": spec})
}

// Bots are the Bots of Organizations.
type Bots struct{ Repository[*v1alpha1.Bot] }

// Change carries out an accepted change. It does nothing to a Bot that was changed otherwise since.
func (b Bots) Change(ctx context.Context, cluster string, c v1alpha1.BotChange) error {
	if c.UID == "" {
		return b.Create(ctx, cluster, tenancy.ChangedBot(nil, c))
	}
	held, ok, err := b.Find(ctx, cluster, c.Name)
	if err != nil || !ok || !tenancy.BotChangeApplies(c, held) {
		return err
	}
	want := tenancy.ChangedBot(held, c)
	spec := map[string]any{"role": want.Spec.Role, "displayName": want.Spec.DisplayName}
	if c.Trust != nil {
		spec["trust"] = want.Spec.Trust
	}
	return b.Merge(ctx, cluster, held, map[string]any{"spec": spec})
}

// Invitations are the Invitations of Organizations.
type Invitations struct {
	Repository[*v1alpha1.Invitation]
}

// Change carries out an accepted change. It does nothing where the Invitation does not exist any more.
func (i Invitations) Change(ctx context.Context, cluster string, c v1alpha1.InvitationChange) error {
	if c.Invitation != nil {
		return i.Create(ctx, cluster, tenancy.NewInvitation(c))
	}
	held, ok, err := i.Find(ctx, cluster, c.Name)
	if err != nil || !ok {
		return err
	}
	status := tenancy.ChangedInvitation(held, c)
	if status == held.Status {
		return nil
	}
	return i.Merge(ctx, cluster, held, map[string]any{"status": status}, "status")
}

// Requests are the AccessRequests of Organizations.
type Requests struct {
	Repository[*v1alpha1.AccessRequest]
}

// Change carries out an accepted change. It does nothing where the AccessRequest does not exist any more.
func (r Requests) Change(ctx context.Context, cluster string, c v1alpha1.RequestChange) error {
	if c.Request != nil {
		made := tenancy.NewAccessRequest(c)
		made.Status = v1alpha1.AccessRequestStatus{}
		if err := r.Create(ctx, cluster, made); err != nil || c.Status == nil {
			return err
		}
	}
	held, ok, err := r.Find(ctx, cluster, c.Name)
	if err != nil || !ok || c.Status == nil || equality.Semantic.DeepEqual(held.Status, *c.Status) {
		return err
	}
	return r.Merge(ctx, cluster, held, map[string]any{"status": c.Status}, "status")
}

// Workspaces are kcp's Workspaces of Organizations and in them.
type Workspaces struct {
	Repository[*kcptenancyv1alpha1.Workspace]
	tree tenancy.Tree
}

// CreateChild creates a child Workspace, which may exist already, or takes the spare of its name.
func (w Workspaces) CreateChild(ctx context.Context, orgCluster string, o tenancy.Workspace) error {
	if spare, ok := w.Get(orgCluster, o.UUID); ok && tenancy.IsSpare(spare) {
		return w.takeChild(ctx, orgCluster, spare, o)
	}
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Labels = o.UUID, o.Labels
	ws.Finalizers = []string{v1alpha1.CascadeFinalizer}
	ws.Annotations = childAnnotations(o)
	ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeWorkspace, Path: w.tree.Root()}
	_, err := w.Make(ctx, orgCluster, ws)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The cache may not have a spare.
	held, err := w.Read(ctx, orgCluster, o.UUID)
	if err != nil || !tenancy.IsSpare(held) {
		return err
	}
	return w.takeChild(ctx, orgCluster, held, o)
}

// childAnnotations are those of a new child Workspace.
func childAnnotations(o tenancy.Workspace) map[string]string {
	annotations := map[string]string{v1alpha1.DisplayNameAnnotation: o.DisplayName, v1alpha1.CreatedByAnnotation: o.CreatedBy}
	tenancy.SetWorkspaceDescription(annotations, o.Description)
	tenancy.SetWorkspaceEnd(annotations, o.ExpiresAt)
	tenancy.SetWorkspaceBilling(annotations, o.Billing)
	return annotations
}

func (w Workspaces) takeChild(ctx context.Context, orgCluster string, spare *kcptenancyv1alpha1.Workspace, o tenancy.Workspace) error {
	reserved := tenancy.SpareOf(spare).Reserved
	labels := map[string]any{}
	for key, value := range o.Labels {
		labels[key] = value
	}
	annotations := map[string]any{v1alpha1.CreatedAtAnnotation: o.CreatedAt.UTC().Format(time.RFC3339)}
	for key, value := range childAnnotations(o) {
		annotations[key] = value
	}
	return w.Take(ctx, orgCluster, spare, reserved == nil || reserved.User == o.CreatedBy, map[string]any{
		"labels": labels, "finalizers": append(slices.Clone(spare.Finalizers), v1alpha1.CascadeFinalizer), "annotations": annotations,
	})
}

// Take makes the workspace of an Organization, or a child Workspace, of just this version of a spare.
// metadata are the changes of labels, annotations and finalizers. A spare that is reserved for another
// claim is thrown away, and the error is ErrRetry: what is claimed is then made as without a spare.
func (w Workspaces) Take(ctx context.Context, cluster string, spare *kcptenancyv1alpha1.Workspace, rightful bool, metadata map[string]any) error {
	switch {
	case !spare.DeletionTimestamp.IsZero():
		return fmt.Errorf("%w: the spare is being deleted", controller.ErrRetry)
	case !rightful:
		if err := w.DeleteUnchanged(ctx, cluster, spare); err != nil {
			return err
		}
		return fmt.Errorf("%w: the spare is reserved for another claim", controller.ErrRetry)
	}
	for field, key := range map[string]string{"labels": v1alpha1.SpareLabel, "annotations": v1alpha1.SpareReservedAnnotation} {
		of, _ := metadata[field].(map[string]any)
		if of == nil {
			of = map[string]any{}
		}
		of[key] = nil
		metadata[field] = of
	}
	return w.Merge(ctx, cluster, spare, map[string]any{"metadata": metadata})
}

// KeptBindings returns the wanted APIBindings of logical clusters with the means to keep them. cached returns
// those of a cluster from the cache.
func KeptBindings(bindings Repository[*kcpapisv1alpha2.APIBinding], wanted []*kcpapisv1alpha2.APIBinding, cached func(cluster string) []*kcpapisv1alpha2.APIBinding) tenancy.Bindings {
	return tenancy.Bindings{
		Wanted: wanted,
		Held:   cached,
		List: func(ctx context.Context, cluster string) (list []kcpapisv1alpha2.APIBinding, err error) {
			held, err := bindings.List(ctx, cluster)
			for _, b := range held {
				list = append(list, *b)
			}
			return list, err
		},
		Write: bindings.Put,
	}
}

// Clusters activates and deactivates logical clusters. Its errors are Retryable.
type Clusters struct{ *freeze.Freezer }

// Deactivate makes kcp refuse all requests to a logical cluster.
func (c Clusters) Deactivate(ctx context.Context, cluster string) error {
	return Retryable(c.Freezer.Deactivate(ctx, cluster))
}

// Activate makes kcp serve a logical cluster again.
func (c Clusters) Activate(ctx context.Context, cluster string) error {
	return Retryable(c.Freezer.Activate(ctx, cluster))
}

// ActivateForDeletion lets kcp delete the content of a logical cluster.
func (c Clusters) ActivateForDeletion(ctx context.Context, cluster string) error {
	return Retryable(c.Freezer.ActivateForDeletion(ctx, cluster))
}

// Reactivate removes the mark of kcp's admin from just this version of a logical cluster.
func (c Clusters) Reactivate(ctx context.Context, lc *kcpcorev1alpha1.LogicalCluster) error {
	return Retryable(c.Freezer.Reactivate(ctx, lc))
}
