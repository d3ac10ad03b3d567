package workspace

import (
	"context"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the reconciler reads from memory and writes to kcp.
type Config struct {
	Clock clock.PassiveClock

	// Get reads a child Workspace; nothing that is not one may come out of it.
	Get func(controller.Key) (*kcptenancyv1alpha1.Workspace, bool)
	// Read asks kcp itself, and fails with controller.ErrRetry where the Workspace is gone.
	Read func(ctx context.Context, cluster, name string) (*kcptenancyv1alpha1.Workspace, error)
	// Namespace and ClusterRoles read what is in a logical cluster.
	Namespace    func(cluster, name string) (*corev1.Namespace, bool)
	ClusterRoles func(cluster string) []*rbacv1.ClusterRole
	// Bindings keep the one through which the hub watches. They hold all of a Workspace.
	Bindings tenancy.Bindings
	// AccessMissing counts the bindings of people that are not as they should be.
	AccessMissing func(controller.Key) int

	Policy    Policy
	Lifecycle Lifecycle

	Patch            func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
	User             func(name string) (*v1alpha1.User, bool)
	CreateMembership func(ctx context.Context, cluster string, m *v1alpha1.Membership) error
	ApplyNamespace   func(ctx context.Context, cluster string, n *corev1.Namespace) error
	WriteClusterRole func(ctx context.Context, cluster string, r *rbacv1.ClusterRole) error

	// Template is the operator's; nil for none.
	Template *Template
}

// New returns the reconciler.
func New(c Config) controller.Func {
	if c.Template == nil {
		c.Template = NewTemplate(TemplateConfig{})
	}
	return controller.Reconcile(controller.Kind[*object]{
		Get: func(key controller.Key) (*object, bool) {
			ws, ok := c.Get(key)
			if !ok {
				return nil, false
			}
			return objectOf(ws), true
		},
		Copy:        (*object).copy,
		Status:      func(o *object) *v1alpha1.CommonStatus { return &o.common },
		Encode:      (*object).encode,
		Patch:       c.Patch,
		Clock:       c.Clock,
		Informative: []string{v1alpha1.ConditionPolicyEnforced, v1alpha1.ConditionLegacyRemoved},
		Leaving: func(o *object) bool {
			_, ok := o.Annotations[v1alpha1.DeletionRequestedAtAnnotation]
			return ok
		},
	},
		&lifecycle{config: c},
		&firstAdmin{user: c.User, read: c.Read, create: c.CreateMembership},
		&ready{},
		&binding{bindings: c.Bindings},
		&content{config: c},
		&enforced{policy: c.Policy},
		&legacy{policy: c.Policy},
		&template{c.Template},
		&access{missing: c.AccessMissing},
	)
}
