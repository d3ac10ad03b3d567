package workspace

import (
	"context"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config holds what the steps need.
type Config struct {
	Clock clock.PassiveClock
	// RightsClock is the time by which Workspaces end: kcp's, by its latest answers.
	RightsClock clock.PassiveClock
	// Graces are the times during which a soft-deleted Workspace can be undeleted.
	Graces tenancy.Graces
	// Hold, if not nil, reports that nothing is purged, though its grace period is over.
	Hold func() bool

	Cache       Cache
	Roles       RolesCache
	Workspaces  Workspaces
	Memberships Memberships
	Bots        Bots
	Clusters    Clusters
	Content     Content
	// Bindings are the APIBindings that every Workspace needs.
	Bindings tenancy.Bindings
	Policy   Policy
	// PolicyWindow is the time for which dry runs have to show that kcp enforces the policy.
	// Zero means that one is enough.
	PolicyWindow time.Duration
	// Template is the operator's Workspace template; nil for none.
	Template *Template
	// Ended soft-deletes a Workspace whose time is over, if it is unchanged in kcp, with that mark.
	Ended func(ctx context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace, mark string) error
	// Purged reports that a Workspace is purged, with the number of Memberships and Bots that
	// were removed with it.
	Purged func(ctx context.Context, orgCluster, workspace string, counts map[string]int)
}

// Cache reads from the views.
type Cache struct {
	Namespace func(cluster, name string) (*corev1.Namespace, bool)
	// AccessMissing counts the RBAC objects of people that a Workspace lacks.
	AccessMissing func(controller.Key) int
	User          func(name string) (*v1alpha1.User, bool)
	// Default reports whether a Workspace is the default Workspace of a personal Organization.
	Default func(orgCluster, workspace string) bool
}

// Workspaces reads and writes the kcp Workspaces in the workspace of an Organization.
type Workspaces struct {
	// Get reads a child Workspace from the cache. It returns no other kind of workspace.
	Get func(controller.Key) (*kcptenancyv1alpha1.Workspace, bool)
	// Read reads from kcp. It fails with controller.ErrRetry if the Workspace is gone.
	Read  func(ctx context.Context, orgCluster, name string) (*kcptenancyv1alpha1.Workspace, error)
	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	// Delete deletes the Workspace if it is unchanged in kcp, so an undelete prevents the
	// deletion.
	Delete func(ctx context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace) error
}

// Memberships reads and writes the Memberships of an Organization in kcp.
type Memberships struct {
	List   func(ctx context.Context, orgCluster string) ([]*v1alpha1.Membership, error)
	Create func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
	// Delete deletes the Membership if it is unchanged in kcp.
	Delete func(ctx context.Context, orgCluster string, m *v1alpha1.Membership) error
}

// Bots reads and deletes the Bots of an Organization in kcp.
type Bots struct {
	List   func(ctx context.Context, orgCluster string) ([]*v1alpha1.Bot, error)
	Delete func(ctx context.Context, orgCluster string, b *v1alpha1.Bot) error
}

// Clusters activates and deactivates logical clusters.
type Clusters struct {
	Deactivate, Activate, ActivateForDeletion func(ctx context.Context, cluster string) error
	// Deactivated reads from the cache.
	Deactivated func(cluster string) bool
	// OrgDeactivated reports whether the Organization with its workspace in orgCluster is
	// soft-deleted. All its Workspaces are then deactivated.
	OrgDeactivated func(orgCluster string) bool
}

// Content writes the default namespace and the ClusterRoles of a Workspace.
type Content struct {
	ApplyNamespace func(ctx context.Context, cluster string, n *corev1.Namespace) error
	// KeepClusterRoles turns the held ClusterRoles into the wanted ones.
	KeepClusterRoles func(ctx context.Context, cluster string, held, wanted []tenancy.RBAC) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	if c.Template == nil {
		c.Template = NewTemplate(TemplateConfig{})
	}
	return controller.Reconcile(controller.Kind[*object]{
		Get: func(key controller.Key) (*object, bool) {
			ws, ok := c.Workspaces.Get(key)
			if !ok {
				return nil, false
			}
			return objectOf(ws), true
		},
		Copy:        (*object).copy,
		Status:      func(o *object) *v1alpha1.CommonStatus { return &o.common },
		Encode:      (*object).encode,
		Patch:       c.Workspaces.Patch,
		Clock:       c.Clock,
		Informative: []string{v1alpha1.ConditionPolicyEnforced},
		Leaving: func(o *object) bool {
			_, ok := o.Annotations[v1alpha1.DeletionRequestedAtAnnotation]
			return ok
		},
	},
		&lifecycle{config: c},
		&firstAdmin{byDefault: c.Cache.Default, user: c.Cache.User, read: c.Workspaces.Read, create: c.Memberships.Create},
		&ready{},
		&policy{policy: c.Policy, clock: c.Clock, window: c.PolicyWindow, agreed: map[string]time.Time{}},
		&binding{bindings: c.Bindings},
		&content{config: c},
		&template{c.Template},
		&access{missing: c.Cache.AccessMissing},
	)
}
