package catalogentry

import (
	"context"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// interval is the time after which an entry is looked at again. jittered spreads the entries.
const interval = time.Minute

func jittered() time.Duration { return wait.Jitter(interval, 0.2) }

// Config is what the steps are made of. No step gets all of it.
type Config struct {
	objects.Objects
	// Exports are the APIExports of providers and of child Workspaces. No cache has them.
	Exports objects.Repository[*kcpapisv1alpha2.APIExport]
	Tree    tenancy.Tree
	Clock   clock.PassiveClock
	// ProvidersCluster is the logical cluster of Global entries and of the workspaces of providers.
	ProvidersCluster string

	Views Views
	// Probes has the last probes of servers, and Probe asks for one.
	Probes *probes
	Probe  func(controller.Key)
}

// Views are the caches beside those of the repositories.
type Views interface {
	Places
	People
	Catalog
}

// Places are the cached Organizations and Workspaces.
type Places interface {
	OrgByCluster(cluster string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	Workspaces(org string) []tenancy.Workspace
}

// People are the cached Users, and their Memberships, of which they return the living ones.
type People interface {
	ByName(user string) (*v1alpha1.User, bool)
	MembershipsIn(orgCluster string) []*v1alpha1.Membership
	MembershipsOf(user string) []*v1alpha1.Membership
}

// Catalog are the cached CatalogEntries of all Organizations and the Global ones.
type Catalog interface {
	CatalogEntry(cluster, name string) (*v1alpha1.CatalogEntry, bool)
	// CatalogEntriesOf returns the entries of an Organization. An empty UUID stands for Global
	// entries, here and below.
	CatalogEntriesOf(org string) []*v1alpha1.CatalogEntry
	// CatalogClash returns the entry that is in the way of an entry of the Organization, and the
	// Organization of that one.
	CatalogClash(org string, e *v1alpha1.CatalogEntry) (other *v1alpha1.CatalogEntry, in string, ok bool)
}

// New returns the reconciler.
func New(c Config) controller.Func {
	get := func(key controller.Key) (*v1alpha1.CatalogEntry, bool) {
		return c.Views.CatalogEntry(key.Cluster, key.Name)
	}
	at := locations{tree: c.Tree, providers: c.ProvidersCluster, places: c.Views, workspaces: c.Workspaces}
	held := grants{locations: at, rbac: c.RBAC}
	left := leftovers{grants: held, catalog: c.Views}
	steps := controller.Reconcile(controller.Kind[*v1alpha1.CatalogEntry]{
		Get:         get,
		Copy:        (*v1alpha1.CatalogEntry).DeepCopy,
		Status:      func(e *v1alpha1.CatalogEntry) *v1alpha1.CommonStatus { return &e.Status.CommonStatus },
		Patch:       c.Entries.Commit,
		Clock:       c.Clock,
		Informative: []string{v1alpha1.ConditionBackendReachable},
	},
		&scope{grants: held, catalog: c.Views, clock: c.Clock},
		&export{leftovers: left, exports: c.Exports},
		&publisher{locations: at, people: c.Views, catalog: c.Views, rbac: c.RBAC},
		&grant{grants: held, people: c.Views, bots: c.Bots},
		&backend{probes: c.Probes, begin: c.Probe},
	)
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		e, ok := get(key)
		if !ok {
			return controller.Result{}, left.sweep(ctx, key)
		}
		if org, err := at.organization(e); err == nil && org != nil && org.Deactivated() {
			return controller.Result{}, left.withdraw(ctx, at.where(org, e), e)
		}
		return steps(ctx, key)
	}
}

// leftovers removes grants of which nobody else takes care.
type leftovers struct {
	grants
	catalog Catalog
}

// sweep removes the grants that an entry left behind in Workspaces that took no writes when it
// was deleted.
func (l leftovers) sweep(ctx context.Context, key controller.Key) error {
	org, ok := l.places.OrgByCluster(key.Cluster)
	if !ok || org.Organization == nil || org.Deleted() {
		return nil
	}
	name := tenancy.CatalogGrantName(key.Cluster, key.Name)
	for _, ws := range l.places.Workspaces(org.UUID()) {
		_, role := l.rbac.Roles.Get(ws.ClusterID, name)
		_, binding := l.rbac.Bindings.Get(ws.ClusterID, name)
		if !role && !binding || ws.Deleted() || !ws.KCPReady {
			continue
		}
		if err := l.remove(ctx, ws.ClusterID, name); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes the grants in the workspace of a provider of entries that do not exist. They were
// deleted while the workspace was deactivated.
func (l leftovers) tidy(ctx context.Context, at string) error {
	var left []string
	ours := v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByHub
	err := l.rbac.Bindings.Each(ctx, at, ours, func(b *rbacv1.ClusterRoleBinding) error {
		cluster, entry, ok := tenancy.ParseCatalogGrantName(b.Name)
		if !ok {
			return nil
		}
		if _, ok := l.catalog.CatalogEntry(cluster, entry); !ok {
			left = append(left, b.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := l.remove(ctx, at, name); err != nil {
			return err
		}
	}
	return nil
}

// withdraw removes the grant of an entry of a soft-deleted Organization from the workspace of
// a provider. The entry itself and the Workspaces of the Organization take no writes.
func (l leftovers) withdraw(ctx context.Context, at location, e *v1alpha1.CatalogEntry) error {
	if at.workspace != "" || at.problem != "" {
		return nil
	}
	return l.remove(ctx, at.at, grantName(e))
}
