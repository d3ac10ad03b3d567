package catalogentry

import (
	"context"
	"fmt"
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

// Config is what the steps need.
type Config struct {
	Tree    tenancy.Tree
	Clock   clock.PassiveClock
	Entries Entries
	Cache   Cache
	Exports Exports
	Rights  Rights
	Grants  Grants
	Probes  Probes
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

// Exports reads APIExports from kcp. at is the path or the logical cluster of the workspace,
// here and below.
type Exports struct {
	Find func(ctx context.Context, at, name string) (*kcpapisv1alpha2.APIExport, Absence, error)
}

// Grants reads and writes the grants of entries.
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
	steps := controller.Reconcile(controller.Kind[*v1alpha1.CatalogEntry]{
		Get:         c.Entries.Get,
		Copy:        (*v1alpha1.CatalogEntry).DeepCopy,
		Status:      func(e *v1alpha1.CatalogEntry) *v1alpha1.CommonStatus { return &e.Status.CommonStatus },
		Patch:       c.Entries.Patch,
		Clock:       c.Clock,
		Informative: []string{v1alpha1.ConditionBackendReachable},
	},
		&scope{config: c},
		&export{config: c},
		&publisher{config: c},
		&grant{config: c},
		&backend{config: c},
	)
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		e, ok := c.Entries.Get(key)
		if !ok {
			return controller.Result{}, c.sweep(ctx, key)
		}
		if org, inGrace, _ := c.Cache.Organization(key.Cluster); inGrace {
			return controller.Result{}, c.withdraw(ctx, org, e)
		}
		return steps(ctx, key)
	}
}

// organization returns the Organization of an entry, or nil for a Global one. It fails with
// controller.ErrRetry if neither is known, so that no entry counts as Global by mistake.
func (c Config) organization(e *v1alpha1.CatalogEntry) (*tenancy.Org, error) {
	org, _, ok := c.Cache.Organization(clusterOf(e))
	if !ok {
		return nil, fmt.Errorf("%w: the organization of the entry is not in the cache", controller.ErrRetry)
	}
	return org, nil
}

// sweep removes the grants that an entry left behind in Workspaces that took no writes when it
// was deleted.
func (c Config) sweep(ctx context.Context, key controller.Key) error {
	for _, cluster := range c.Cache.Granted(key) {
		if err := c.Grants.remove(ctx, cluster, tenancy.CatalogGrantName(key.Cluster, key.Name)); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes the grants in the workspace of a provider of entries that do not exist. They were
// deleted while the workspace was deactivated.
func (c Config) tidy(ctx context.Context, at string) error {
	names, err := c.Grants.List(ctx, at)
	if err != nil {
		return err
	}
	for _, name := range names {
		cluster, entry, ok := tenancy.ParseCatalogGrantName(name)
		if !ok {
			continue
		}
		if _, ok := c.Entries.Get(controller.Key{Cluster: cluster, Name: entry}); ok {
			continue
		}
		if err := c.Grants.remove(ctx, at, name); err != nil {
			return err
		}
	}
	return nil
}

// withdraw removes the grant of an entry of a soft-deleted Organization from the workspace of
// a provider. The entry itself and the Workspaces of the Organization take no writes.
func (c Config) withdraw(ctx context.Context, org *tenancy.Org, e *v1alpha1.CatalogEntry) error {
	at := c.where(org, e)
	if at.workspace != "" || at.problem != "" {
		return nil
	}
	return c.Grants.remove(ctx, at.at, grantName(e))
}

// location is where the export of an entry is.
type location struct {
	// at is the path or the logical cluster of the workspace of the export.
	at string
	// workspace is the UUID of the child Workspace; empty for the workspace of a provider.
	workspace string
	// problem says why the hub cannot look there; empty if it can.
	problem string
}

// where finds the export of an entry. org is nil for a Global entry.
func (c Config) where(org *tenancy.Org, e *v1alpha1.CatalogEntry) location {
	uuid := ""
	if org != nil {
		uuid = org.UUID()
	}
	workspace, err := tenancy.CheckCatalogExport(c.Tree, uuid, e.Spec.APIExport)
	if err != nil {
		return location{problem: err.Error()}
	}
	if workspace == "" {
		return location{at: e.Spec.APIExport.Path}
	}
	l := location{workspace: workspace}
	ws, ok := c.Cache.Workspace(uuid, workspace)
	switch {
	case !ok:
		l.problem = string(WorkspaceGone)
	case ws.Deleted():
		l.problem = "its workspace was deleted; undelete that, or delete this entry"
	case !ws.KCPReady || ws.ClusterID == "":
		l.problem = "kcp is making its workspace"
	default:
		l.at = ws.ClusterID
	}
	return l
}
