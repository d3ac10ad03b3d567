package bot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the steps need.
type Config struct {
	Clock    clock.PassiveClock
	Cache    Cache
	Bots     Bots
	Accounts Accounts
	Bindings Bindings
	Secrets  Secrets
	Rights   Rights
	// WorkspaceExists asks kcp whether a Workspace exists in the logical cluster of its
	// Organization.
	WorkspaceExists func(ctx context.Context, orgCluster, workspace string) (bool, error)
}

// Cache reads from the views.
type Cache struct {
	// Workspace finds a Workspace in the logical cluster of its Organization. deleted is true
	// if it or its Organization is soft-deleted or being removed.
	Workspace func(orgCluster, workspace string) (ws tenancy.Workspace, deleted, ok bool)
	Account   func(cluster, name string) (*corev1.ServiceAccount, bool)
	// Bindings and Secrets are the hub's for the Bot of that name.
	Bindings func(cluster, bot string) []*rbacv1.ClusterRoleBinding
	Secrets  func(cluster, bot string) []*corev1.Secret
}

// Bots reads and writes Bots in the logical cluster of an Organization.
type Bots struct {
	Get   func(controller.Key) (*v1alpha1.Bot, bool)
	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	// Read reads from kcp. It fails with controller.ErrRetry if the Bot is gone.
	Read func(ctx context.Context, orgCluster, name string) (*v1alpha1.Bot, error)
	// Delete deletes the Bot if it is unchanged in kcp.
	Delete func(ctx context.Context, orgCluster string, b *v1alpha1.Bot) error
}

// Accounts reads and writes ServiceAccounts in the default namespace of a Workspace.
type Accounts struct {
	// Find reads from kcp.
	Find func(ctx context.Context, cluster, name string) (a *corev1.ServiceAccount, ok bool, err error)
	// Create creates the ServiceAccount. It fails with controller.ErrRetry if one exists.
	Create func(ctx context.Context, cluster string, a *corev1.ServiceAccount) (*corev1.ServiceAccount, error)
	// Mend sets the labels and annotations of want on the unchanged have.
	Mend func(ctx context.Context, cluster string, have, want *corev1.ServiceAccount) error
	// Delete deletes the ServiceAccount with this UID.
	Delete func(ctx context.Context, cluster string, a *corev1.ServiceAccount) error
}

// Bindings writes ClusterRoleBindings of a Workspace.
type Bindings struct {
	// Find reads from kcp.
	Find   func(ctx context.Context, cluster, name string) (b *rbacv1.ClusterRoleBinding, ok bool, err error)
	Write  func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
	Delete func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error
}

// Secrets reads and deletes Secrets in the default namespace of a Workspace.
type Secrets struct {
	// Find reads from kcp.
	Find   func(ctx context.Context, cluster, name string) (s *corev1.Secret, ok bool, err error)
	Delete func(ctx context.Context, cluster string, s *corev1.Secret) error
}

// Rights asks kcp what it allows a Bot.
type Rights interface {
	// Followed reports whether kcp goes by what is left to a caller, and not by the role any more.
	Followed(ctx context.Context, caller, role string, left tenancy.Entry) (bool, error)
	// Excess names bindings that the hub did not make and that give the Bot more than is left.
	Excess(ctx context.Context, bot string, left tenancy.Entry) ([]string, error)
}

// New returns the reconciler.
func New(c Config) controller.Func {
	return controller.Reconcile(controller.Kind[*v1alpha1.Bot]{
		Get:    c.Bots.Get,
		Copy:   (*v1alpha1.Bot).DeepCopy,
		Status: func(b *v1alpha1.Bot) *v1alpha1.CommonStatus { return &b.Status.CommonStatus },
		Patch:  c.Bots.Patch,
		Clock:  c.Clock,
	},
		&workspace{config: c},
		&account{config: c},
		&role{config: c},
		&tokens{config: c},
	)
}
