package server

import (
	"net/http"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/providers"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// providers returns the handler of providers.
func (p routes) providers(scopes httpmw.Scopes) *providers.Handler {
	c := p.config
	return &providers.Handler{
		Catalog: p.views, Views: p.views, Store: p.store, Followed: p.rolesFollowed,
		As:          func(r *http.Request) (providers.Bindings, error) { return p.bindings(r) },
		Kept:        keptBindings(c.Template),
		HeaderScope: scopes.Headers, WorkspaceScope: scopes.Workspace,
		CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
	}
}

// keptBindings returns a func that reports whether an APIBinding is of an export of the hub, or
// of one that the Workspace template binds.
func keptBindings(template []*unstructured.Unstructured) func(*kcpapisv1alpha2.APIBinding) bool {
	kept := map[v1alpha1.APIExportRef]bool{}
	for _, o := range template {
		if o.GroupVersionKind().GroupKind() != kcpapisv1alpha2.Kind("APIBinding") {
			continue
		}
		// A template without these fields is refused at the start.
		path, _, _ := unstructured.NestedString(o.Object, "spec", "reference", "export", "path")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "reference", "export", "name")
		kept[v1alpha1.APIExportRef{Path: path, Name: name}] = true
	}
	return func(b *kcpapisv1alpha2.APIBinding) bool {
		ref := tenancy.ExportOf(b)
		return kept[ref] || tenancy.ReservedExport(ref.Name)
	}
}
