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
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// interval is the time after which an entry is looked at again. jittered spreads the entries.
const interval = time.Minute

func jittered() time.Duration { return wait.Jitter(interval, 0.2) }

// Config is what the steps are made of. No step gets all of it.
type Config struct {
	Tree    tenancy.Tree
	Clock   clock.PassiveClock
	Entries Entries
	Cache   Cache
	// FindExport reads an APIExport from kcp. at is the path or the logical cluster of its workspace.
	FindExport func(ctx context.Context, at, name string) (*kcpapisv1alpha2.APIExport, Absence, error)
	Rights     Rights
	Grants     Grants
	Probes     Probes
}

// Entries reads and writes CatalogEntries.
type Entries struct {
	Get   func(controller.Key) (*v1alpha1.CatalogEntry, bool)
	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
}

// Cache reads from the views.
type Cache struct {
	// Organization returns the Organization that entries of a logical cluster belong to, or nil for
	// Global entries. ok is false if it knows neither. inGrace is true if the Organization is
	// deactivated.
	Organization func(cluster string) (org *tenancy.Org, inGrace, ok bool)
	Workspace    func(org, workspace string) (tenancy.Workspace, bool)
	// Clash returns the entry that is in the way of an entry of the Organization, and the
	// Organization of that one. An empty UUID stands for Global entries.
	Clash func(org string, e *v1alpha1.CatalogEntry) (other *v1alpha1.CatalogEntry, in string, ok bool)
	// Audience returns the subjects who may bind the exports of entries of an Organization.
	Audience func(tenancy.Org) []rbacv1.Subject
	// Granted returns the logical clusters of the Workspaces that have a grant for an entry.
	Granted func(controller.Key) []string
}

// Absence says why there is no APIExport. It is empty if there is one.
type Absence string

// The values of Absence.
const (
	ExportGone        Absence = "its workspace has no APIExport of that name any more"
	WorkspaceGone     Absence = "its workspace does not exist any more"
	WorkspaceInactive Absence = "kcp does not serve its workspace, which is deactivated or being deleted"
)

// Grants reads and writes the grants of entries. at is the path or the logical cluster of the workspace
// of the export.
type Grants struct {
	// Find returns the role and the binding of a name, from the cache where that has them. Read reads
	// them from kcp.
	Find, Read func(ctx context.Context, at, name string) ([]tenancy.RBAC, error)
	// Keep turns the held objects into the wanted ones.
	Keep func(ctx context.Context, at string, held, wanted []tenancy.RBAC) error
	// List returns the names of the bindings of all grants in kcp.
	List func(ctx context.Context, at string) (names []string, err error)
}

func (g Grants) remove(ctx context.Context, at, name string) error {
	held, err := g.Read(ctx, at, name)
	if err != nil {
		return err
	}
	return g.Keep(ctx, at, held, nil)
}

// Probes tells what is known of the server of an entry.
type Probes struct {
	// Last returns what the last probe found wrong, which is empty if the server answers; ok is
	// false if there was no probe yet.
	Last func(controller.Key) (problem string, ok bool)
	// Begin asks for a probe.
	Begin func(controller.Key)
}

// New returns the reconciler.
func New(c Config) controller.Func {
	at := locations{tree: c.Tree, org: c.Cache.Organization, child: c.Cache.Workspace}
	left := leftovers{entries: c.Entries, grants: c.Grants, granted: c.Cache.Granted}
	steps := controller.Reconcile(controller.Kind[*v1alpha1.CatalogEntry]{
		Get:         c.Entries.Get,
		Copy:        (*v1alpha1.CatalogEntry).DeepCopy,
		Status:      func(e *v1alpha1.CatalogEntry) *v1alpha1.CommonStatus { return &e.Status.CommonStatus },
		Patch:       c.Entries.Patch,
		Clock:       c.Clock,
		Informative: []string{v1alpha1.ConditionBackendReachable},
	},
		&scope{locations: at, clash: c.Cache.Clash, grants: c.Grants, clock: c.Clock},
		&export{locations: at, find: c.FindExport, leftovers: left},
		&publisher{locations: at, rights: c.Rights},
		&grant{locations: at, audience: c.Cache.Audience, grants: c.Grants},
		&backend{probes: c.Probes},
	)
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		e, ok := c.Entries.Get(key)
		if !ok {
			return controller.Result{}, left.sweep(ctx, key)
		}
		if org, inGrace, _ := c.Cache.Organization(key.Cluster); inGrace {
			return controller.Result{}, left.withdraw(ctx, at.where(org, e), e)
		}
		return steps(ctx, key)
	}
}

// leftovers removes grants of which nobody else takes care.
type leftovers struct {
	entries Entries
	grants  Grants
	granted func(controller.Key) []string
}

// sweep removes the grants that an entry left behind in Workspaces that took no writes when it
// was deleted.
func (l leftovers) sweep(ctx context.Context, key controller.Key) error {
	for _, cluster := range l.granted(key) {
		if err := l.grants.remove(ctx, cluster, tenancy.CatalogGrantName(key.Cluster, key.Name)); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes the grants in the workspace of a provider of entries that do not exist. They were
// deleted while the workspace was deactivated.
func (l leftovers) tidy(ctx context.Context, at string) error {
	names, err := l.grants.List(ctx, at)
	if err != nil {
		return err
	}
	for _, name := range names {
		cluster, entry, ok := tenancy.ParseCatalogGrantName(name)
		if !ok {
			continue
		}
		if _, ok := l.entries.Get(controller.Key{Cluster: cluster, Name: entry}); ok {
			continue
		}
		if err := l.grants.remove(ctx, at, name); err != nil {
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
	return l.grants.remove(ctx, at.at, grantName(e))
}
