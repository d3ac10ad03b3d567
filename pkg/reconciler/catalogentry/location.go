package catalogentry

import (
	"fmt"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// locations finds the Organization and the export of an entry.
type locations struct {
	tree  tenancy.Tree
	org   func(cluster string) (org *tenancy.Org, inGrace, ok bool)
	child func(org, workspace string) (tenancy.Workspace, bool)
}

// organization returns the Organization of an entry, or nil for a Global one. It fails with
// controller.ErrRetry if neither is known, so that no entry counts as Global by mistake.
func (l locations) organization(e *v1alpha1.CatalogEntry) (*tenancy.Org, error) {
	org, _, ok := l.org(clusterOf(e))
	if !ok {
		return nil, fmt.Errorf("%w: the organization of the entry is not in the cache", controller.ErrRetry)
	}
	return org, nil
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
func (l locations) where(org *tenancy.Org, e *v1alpha1.CatalogEntry) location {
	uuid := ""
	if org != nil {
		uuid = org.UUID()
	}
	workspace, err := tenancy.CheckCatalogExport(l.tree, uuid, e.Spec.APIExport)
	if err != nil {
		return location{problem: err.Error()}
	}
	if workspace == "" {
		return location{at: e.Spec.APIExport.Path}
	}
	at := location{workspace: workspace}
	ws, ok := l.child(uuid, workspace)
	switch {
	case !ok:
		at.problem = string(WorkspaceGone)
	case ws.Deleted():
		at.problem = "its workspace was deleted; undelete that, or delete this entry"
	case !ws.KCPReady || ws.ClusterID == "":
		at.problem = "kcp is making its workspace"
	default:
		at.at = ws.ClusterID
	}
	return at
}
