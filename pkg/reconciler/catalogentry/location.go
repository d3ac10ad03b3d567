package catalogentry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// locations finds the Organization and the export of an entry.
type locations struct {
	tree tenancy.Tree
	// providers is the logical cluster of Global entries and of the workspaces of providers.
	providers  string
	places     Places
	workspaces objects.Workspaces
}

func clusterOf(o logicalcluster.Object) string { return string(logicalcluster.From(o)) }

// organization returns the Organization of an entry, or nil for a Global one. It fails with
// controller.ErrRetry if neither is known, so that no entry counts as Global by mistake.
func (l locations) organization(e *v1alpha1.CatalogEntry) (*tenancy.Org, error) {
	cluster := clusterOf(e)
	if cluster == l.providers {
		return nil, nil
	}
	org, ok := l.places.OrgByCluster(cluster)
	if !ok || org.Organization == nil {
		return nil, fmt.Errorf("%w: the organization of the entry is not in the cache", controller.ErrRetry)
	}
	return &org, nil
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
	ws, ok := l.places.Workspace(uuid, workspace)
	switch {
	case !ok:
		at.problem = string(workspaceGone)
	case ws.Deleted():
		at.problem = "its workspace was deleted; undelete that, or delete this entry"
	case !ws.KCPReady || ws.ClusterID == "":
		at.problem = "kcp is making its workspace"
	default:
		at.at = ws.ClusterID
	}
	return at
}

// gone reports whether a NotFound is about the workspace of a path and not about an object in it.
// While kcp starts it knows no paths and answers NotFound for all. Therefore the workspaces on the
// path are read from the logical cluster of the providers downwards; if they exist, the error is
// controller.ErrRetry.
func (l locations) gone(ctx context.Context, path string, notFound error) (bool, error) {
	below, ok := strings.CutPrefix(path, l.tree.Providers()+":")
	var status apierrors.APIStatus
	if !ok || !errors.As(notFound, &status) || status.Status().Details == nil || status.Status().Details.Kind != "workspaces" {
		return false, nil
	}
	cluster := l.providers
	for _, name := range strings.Split(below, ":") {
		ws, ok, err := l.workspaces.Find(ctx, cluster, name)
		if err != nil || !ok {
			return err == nil, err
		}
		if cluster = ws.Spec.Cluster; cluster == "" {
			return false, controller.ErrRetry
		}
	}
	return false, controller.ErrRetry
}
