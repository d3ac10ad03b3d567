package bot

import (
	"context"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
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
	// RightsClock is the time by which tokens end.
	RightsClock clock.PassiveClock
	Views       Views
	Rights      Rights
	// Issuers are the identity providers whose jobs Bots may trust.
	Issuers []string
}

// Views are the caches beside those of the repositories.
type Views interface {
	OrgByCluster(cluster string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
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
	find := func(b *v1alpha1.Bot) (ws tenancy.Workspace, deleted, ok bool) {
		org, ok := c.Views.OrgByCluster(string(logicalcluster.From(b)))
		if !ok || org.Organization == nil {
			return tenancy.Workspace{}, false, false
		}
		ws, ok = c.Views.Workspace(org.UUID(), b.Spec.WorkspaceRef.Name)
		return ws, org.Deleted() || ws.Deleted(), ok
	}
	return controller.Reconcile(controller.Kind[*v1alpha1.Bot]{
		Get: func(key controller.Key) (*v1alpha1.Bot, bool) {
			if org, ok := c.Views.OrgByCluster(key.Cluster); !ok || org.Deactivated() {
				return nil, false
			}
			return c.Bots.ByKey(key)
		},
		Copy:   (*v1alpha1.Bot).DeepCopy,
		Status: func(b *v1alpha1.Bot) *v1alpha1.CommonStatus { return &b.Status.CommonStatus },
		Patch:  c.Bots.Commit,
		Clock:  c.Clock,
	},
		&workspace{find: find, workspaces: c.Workspaces, bots: c.Bots, accounts: c.Accounts, secrets: c.Secrets, rbac: c.RBAC},
		&account{find: find, accounts: c.Accounts, rbac: c.RBAC},
		&role{find: find, rights: c.Rights, clock: c.Clock},
		&tokens{find: find, bots: c.Bots, secrets: c.Secrets, clock: c.RightsClock, issuers: c.Issuers},
	)
}

// findFunc finds the Workspace of a Bot in the cache. deleted is true if it or its Organization is
// soft-deleted or being removed.
type findFunc func(*v1alpha1.Bot) (ws tenancy.Workspace, deleted, ok bool)

// ofBot returns the objects of a logical cluster in the cache that the hub made for a Bot.
func ofBot[T tenancy.RBAC](cache objects.Cache[T], cluster, bot string) []T {
	return slices.DeleteFunc(slices.Clone(cache.InCluster(cluster)), func(o T) bool { return !tenancy.OfBot(o, bot) })
}
