package providers

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// scopeDeleted is the scope of an entry that is still enabled but no longer exists.
const scopeDeleted = "Deleted"

// countTimeout limits the time of the one GET that asks kcp.
const countTimeout = 2 * time.Second

// Catalog are the caches of CatalogEntries and of their APIBindings.
type Catalog interface {
	// BindingsIn returns the APIBindings of the logical cluster of a Workspace.
	BindingsIn(cluster string) []*kcpapisv1alpha2.APIBinding
	CatalogEntriesOf(org string) []*v1alpha1.CatalogEntry
	CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool)
	CatalogClash(org string, e *v1alpha1.CatalogEntry) (other *v1alpha1.CatalogEntry, in string, ok bool)
}

// KCP reads from kcp, with the hub's own credential.
type KCP interface {
	// GetExport returns nil if the APIExport does not exist.
	GetExport(ctx context.Context, ref v1alpha1.APIExportRef) (*kcpapisv1alpha2.APIExport, error)
	WorkspaceAPIs(ctx context.Context, cluster string) (bindings []*kcpapisv1alpha2.APIBinding, definitions []string, err error)
	CountObjects(ctx context.Context, cluster string, resources []v1alpha1.CatalogResource) ([]tenancy.Loss, error)
	// RestoreBinding deletes b or, if before is not nil, gives it the spec of before.
	RestoreBinding(ctx context.Context, cluster string, b, before *kcpapisv1alpha2.APIBinding) error
}

// Bindings writes APIBindings with the credential of a caller.
type Bindings interface {
	CreateBinding(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding, dryRun bool) (*kcpapisv1alpha2.APIBinding, error)
	// MayBind returns an error if kcp does not let the caller bind an export.
	MayBind(ctx context.Context, cluster string, ref v1alpha1.APIExportRef) error
	UpdateBinding(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding, dryRun bool) (*kcpapisv1alpha2.APIBinding, error)
	DeleteBinding(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error
}

// Handler serves /api/providers and /api/orgs/{org}/workspaces/{ws}/providers.
type Handler struct {
	api.Deps
	Catalog Catalog
	KCP     KCP
	// As returns a client that writes with the credential of the caller of a request.
	As func(r *http.Request) (Bindings, error)
	// Kept reports whether a binding belongs to the hub or the Workspace template.
	Kept func(b *kcpapisv1alpha2.APIBinding) bool
	// Followed reports whether the roles of a Workspace cover all APIs that are bound there.
	Followed func(org, workspace string) bool
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	const one = "/orgs/{org}/workspaces/{ws}/providers/{entry}"
	r.With(h.Scopes.Headers).Get("/providers", httpapi.Handle(h.list))
	r.With(h.Scopes.Workspace).Get(one, httpapi.Handle(h.get))
	r.With(h.Scopes.Workspace).Post(one+"/enable", httpapi.Handle(h.enable))
	r.With(h.Scopes.Workspace).Delete(one+"/enable", httpapi.Handle(h.disable))
}

// provider is an entry that people of the Org see, or a deleted one, with its binding in a Workspace.
type provider struct {
	// entry is nil for one that was deleted. org is nil for a Global one.
	entry   *v1alpha1.CatalogEntry
	org     *tenancy.Org
	binding *kcpapisv1alpha2.APIBinding
	// hidden says why the entry is shown only where it is enabled, and cannot be enabled; empty
	// for other entries.
	hidden string
}

// version is the resource version that the ETag of the provider has.
func (p provider) version() string {
	if p.binding != nil {
		return p.binding.ResourceVersion
	}
	return p.entry.ResourceVersion
}

func (p provider) known() *v1alpha1.CatalogExport {
	if p.entry == nil {
		return nil
	}
	return p.entry.Status.Export
}

// view is the provider in a Workspace.
func (p provider) view() rest.Provider {
	export := tenancy.ExportIn(p.known(), p.binding)
	state, message := tenancy.CatalogStateOf(export, p.binding)
	v := rest.Provider{Entry: p.described(export), State: string(state), Message: message}
	if state != tenancy.CatalogDisabled {
		p.answer(v.Claims, export)
		if v.Message == "" && p.hidden != "" {
			v.Message = p.hidden + "; it stays enabled here and can be disabled"
		}
	}
	return v
}

// described returns the view of the entry with the claims and resources of export.
func (p provider) described(export *v1alpha1.CatalogExport) rest.Entry {
	if p.entry != nil {
		e := *p.entry
		e.Status.Export = export
		return wire.Entry(&e, p.org)
	}
	was, _ := tenancy.EnabledEntryOf(p.binding)
	e := &v1alpha1.CatalogEntry{}
	e.Name, e.CreationTimestamp = was.UUID, p.binding.CreationTimestamp
	e.Spec.Slug, e.Spec.DisplayName, e.Spec.MemberResources = was.Slug, was.DisplayName, was.MemberResources
	e.Spec.APIExport = tenancy.ExportOf(p.binding)
	e.Status.Export = export
	v := wire.Entry(e, nil)
	v.Scope, v.Phase, v.Conditions = scopeDeleted, string(v1alpha1.PhaseTerminating), []rest.Condition{}
	return v
}

// answer adds the answers of the binding to the claims of its export.
func (p provider) answer(claims []rest.ProviderClaim, export *v1alpha1.CatalogExport) {
	if export == nil {
		return
	}
	for i, state := range tenancy.ClaimStatesOf(export.Claims, p.binding) {
		claims[i].State = string(state)
	}
}

// see returns an entry as people of a Workspace with these bindings see it: one of the Organization
// of or, if that is nil, a Global one. An entry whose slug clashes, or whose publisher lost the
// right to bind the export, is seen only where it is enabled.
func (h *Handler) see(of *tenancy.Org, e *v1alpha1.CatalogEntry, bindings []*kcpapisv1alpha2.APIBinding) (p provider, ok bool) {
	if !e.DeletionTimestamp.IsZero() {
		return provider{}, false
	}
	uuid := ""
	if of != nil {
		uuid = of.UUID()
	}
	p = provider{entry: e, org: of}
	if _, _, clashes := h.Catalog.CatalogClash(uuid, e); clashes {
		p.hidden = "another catalog entry has the slug " + e.Spec.Slug
	} else if tenancy.RightEnded(e) {
		p.hidden = "the person who published it may not bind its API any more"
	}
	if p.hidden == "" {
		p.binding = bindingOf(e, bindings)
		return p, true
	}
	// Another entry may have enabled the same export: its binding says so.
	if p.binding = bindingOf(e, bindings); p.binding != nil {
		if by, ok := tenancy.EnabledEntryOf(p.binding); ok && by.UUID != e.Name {
			p.binding = tenancy.BindingNaming(bindings, e.Name)
		}
	}
	return p, p.binding != nil
}

// all returns the providers that people of an Org see. bindings are those of the Workspace.
func (h *Handler) all(org tenancy.Org, bindings []*kcpapisv1alpha2.APIBinding) (found []provider) {
	add := func(of *tenancy.Org, uuid string) {
		for _, e := range h.Catalog.CatalogEntriesOf(uuid) {
			if p, ok := h.see(of, e, bindings); ok {
				found = append(found, p)
			}
		}
	}
	add(nil, "")
	add(&org, org.UUID())
	known := map[string]bool{}
	for _, p := range found {
		known[p.entry.Name] = true
	}
	for _, b := range bindings {
		if was, ok := tenancy.EnabledEntryOf(b); ok && !known[was.UUID] && !slices.ContainsFunc(found, func(p provider) bool { return p.binding == b }) {
			known[was.UUID] = true
			found = append(found, provider{binding: b})
		}
	}
	return found
}

// Visible returns the entries that people of an Organization can enable.
func (h *Handler) Visible(org tenancy.Org) (entries []*v1alpha1.CatalogEntry) {
	for _, p := range h.all(org, nil) {
		entries = append(entries, p.entry)
	}
	return entries
}

// bindingOf returns the binding of an entry. A binding that names the entry counts even if its
// export differs: an earlier entry of the same slug may have had another export.
func bindingOf(e *v1alpha1.CatalogEntry, bindings []*kcpapisv1alpha2.APIBinding) *kcpapisv1alpha2.APIBinding {
	if b := tenancy.BindingOf(bindings, e); b != nil {
		return b
	}
	return tenancy.BindingNaming(bindings, e.Name)
}

// find returns the provider in the path. bindings are those of the Workspace. The answer for an
// entry of another Org is the same as for a missing one.
func (h *Handler) find(r *http.Request, bindings []*kcpapisv1alpha2.APIBinding) (provider, error) {
	scope, name := httpmw.ScopeOf(r), chi.URLParam(r, "entry")
	if e, ok := h.Catalog.CatalogEntryIn("", name); ok {
		if p, ok := h.see(nil, e, bindings); ok {
			return p, nil
		}
	}
	if e, ok := h.Catalog.CatalogEntryIn(scope.Org.UUID(), name); ok {
		if p, ok := h.see(&scope.Org, e, bindings); ok {
			return p, nil
		}
	}
	if b := tenancy.BindingNaming(bindings, name); b != nil {
		return provider{binding: b}, nil
	}
	return provider{}, tenancy.NoSuchCatalogEntry()
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	var bindings []*kcpapisv1alpha2.APIBinding
	if scope.Workspace != nil {
		bindings = h.Catalog.BindingsIn(scope.Workspace.ClusterID)
	}
	var items []rest.Provider
	for _, p := range h.all(scope.Org, bindings) {
		if scope.Workspace == nil {
			items = append(items, rest.Provider{Entry: wire.Entry(p.entry, p.org)})
			continue
		}
		items = append(items, p.view())
	}
	return paging.Write(w, r, items, func(v rest.Provider) (string, string) { return v.DisplayName, v.UUID })
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	p, err := h.find(r, h.Catalog.BindingsIn(scope.Workspace.ClusterID))
	if err != nil {
		return err
	}
	v := p.view()
	ctx, cancel := context.WithTimeout(r.Context(), countTimeout)
	defer cancel()
	losses, err := h.losses(ctx, scope.Workspace.ClusterID, p.binding)
	if err != nil {
		return err
	}
	v.WouldLose = make([]rest.Loss, len(losses))
	for i, l := range losses {
		v.WouldLose[i] = rest.Loss{GroupResource: rest.GroupResource{Group: l.Group, Resource: l.Resource}, Count: l.Count}
	}
	return answer(w, http.StatusOK, p, v)
}

// losses counts the objects that kcp deletes with a binding. The result is never nil.
func (h *Handler) losses(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) ([]tenancy.Loss, error) {
	if b == nil || len(b.Status.BoundResources) == 0 {
		return []tenancy.Loss{}, nil
	}
	return h.KCP.CountObjects(ctx, cluster, tenancy.BoundBy(b))
}

func answer(w http.ResponseWriter, code int, p provider, v rest.Provider) error {
	httpapi.Tag(w, p.version())
	return httpapi.Write(w, code, v)
}
