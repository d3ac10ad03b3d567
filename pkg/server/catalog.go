package server

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/catalog"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// catalog returns the handler of CatalogEntries.
func (p routes) catalog(scopes httpmw.Scopes) *catalog.Handler {
	c := p.config
	return &catalog.Handler{
		Views: p.views, Tenants: p.views, Store: p.store, Tree: c.Tree, GlobalCluster: p.globalCluster, MayBind: p.mayBind,
		OrgScope: scopes.Org, PrivateBackends: c.Catalog.AllowPrivateBackends, CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
	}
}

// mayBind asks kcp whether the caller of a request may bind an export: it creates an APIBinding
// as the caller, by a dry run.
func (p routes) mayBind(ctx context.Context, r *http.Request, cluster string, ref v1alpha1.APIExportRef) error {
	as, err := p.bindings(r)
	if err != nil {
		return err
	}
	_, err = as.CreateBinding(ctx, cluster, tenancy.ProbeBinding(ref), true)
	return err
}
