package workspace

import (
	"context"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the steps are made of. No step gets all of it.
type Config struct {
	objects.Objects
	Clock clock.PassiveClock
	// RightsClock is the time by which Workspaces end: kcp's, by its latest answers.
	RightsClock clock.PassiveClock
	// Graces are the times during which a soft-deleted Workspace can be undeleted.
	Graces tenancy.Graces
	// Hold, if not nil, reports that nothing is purged, though its grace period is over.
	Hold func() bool
	// OrgsCluster is the logical cluster of the workspaces of Organizations.
	OrgsCluster string

	Views      Views
	Namespaces objects.Cache[*corev1.Namespace]
	Roles      RolesCache
	Clusters   Clusters
	// Missing counts the RBAC objects of people that a Workspace lacks.
	Missing func(controller.Key) int
	// Apply applies an object server-side.
	Apply func(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Wanted are the APIBindings that every Workspace needs.
	Wanted []*kcpapisv1alpha2.APIBinding
	Policy Policy
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

// Views are the caches beside those of the repositories.
type Views interface {
	OrgByCluster(cluster string) (tenancy.Org, bool)
	ByName(user string) (*v1alpha1.User, bool)
}

// Clusters activates and deactivates logical clusters. Deactivated reads from the cache.
type Clusters interface {
	Deactivate(ctx context.Context, cluster string) error
	Activate(ctx context.Context, cluster string) error
	ActivateForDeletion(ctx context.Context, cluster string) error
	Deactivated(cluster string) bool
}

// New returns the reconciler.
func New(c Config) controller.Func {
	if c.Template == nil {
		c.Template = NewTemplate(TemplateConfig{})
	}
	return controller.Reconcile(controller.Kind[*object]{
		Get:         c.get,
		Copy:        (*object).copy,
		Status:      func(o *object) *v1alpha1.CommonStatus { return &o.common },
		Encode:      (*object).encode,
		Patch:       c.Workspaces.Commit,
		Clock:       c.Clock,
		Informative: []string{v1alpha1.ConditionPolicyEnforced},
		Leaving: func(o *object) bool {
			_, ok := o.Annotations[v1alpha1.DeletionRequestedAtAnnotation]
			return ok
		},
	},
		&lifecycle{
			clock: c.Clock, rightsClock: c.RightsClock, graces: c.Graces, hold: c.Hold, org: c.Views.OrgByCluster, clusters: c.Clusters,
			workspaces: c.Workspaces, ended: c.Ended,
			cascade: &cascade{memberships: c.Memberships, bots: c.Bots, clusters: c.Clusters, purged: c.Purged},
		},
		&firstAdmin{views: c.Views, workspaces: c.Workspaces, memberships: c.Memberships},
		&ready{},
		&policy{policy: c.Policy, clock: c.Clock, window: c.PolicyWindow, agreed: map[string]time.Time{}},
		&binding{bindings: objects.KeptBindings(c.Bindings, c.Wanted, c.Bindings.InCluster)},
		&content{namespaces: c.Namespaces, apply: c.Apply, roles: c.Roles, rbac: c.RBAC},
		&template{c.Template},
		&access{missing: c.Missing},
	)
}

// get reads a child Workspace, or a spare one, from the cache. It returns no other kind of workspace.
func (c Config) get(key controller.Key) (*object, bool) {
	org, known := c.Views.OrgByCluster(key.Cluster)
	ws, ok := c.Workspaces.ByKey(key)
	switch {
	case !ok, org.Deactivated():
		// The workspace of a soft-deleted Organization is inactive and accepts no writes.
		return nil, false
	case tenancy.IsSpare(ws):
		// The controller of spares finishes that of an Organization, and nothing is written to one that goes.
		return objectOf(ws), key.Cluster != c.OrgsCluster && ws.DeletionTimestamp.IsZero()
	}
	return objectOf(ws), known
}
