package catalog

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Catalog are the caches of CatalogEntries. An empty org stands for the Global ones.
type Catalog interface {
	CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool)
	CatalogEntriesOf(org string) []*v1alpha1.CatalogEntry
	// CatalogClusters returns the logical clusters in which there are entries with a slug.
	CatalogClusters(slug string) []string
	// WorkspacesEnabling counts the child Workspaces that bind an export: those of the Organization in a
	// logical cluster, or all without one.
	WorkspacesEnabling(ref v1alpha1.APIExportRef, org string) int
}

// Orgs are the caches that platform admins look through for the entries of all Organizations.
type Orgs interface {
	Orgs() []tenancy.Org
	// OrgByCluster finds the Organization of a logical cluster. The Global entries are in none.
	OrgByCluster(id string) (tenancy.Org, bool)
	// CatalogEntryNamed finds an entry of any Organization, whose UUID is org.
	CatalogEntryNamed(name string) (e *v1alpha1.CatalogEntry, org string, ok bool)
}

// Entries is the part of store.Store that makes and deletes CatalogEntries.
type Entries interface {
	CreateCatalogEntry(ctx context.Context, cluster string, e *v1alpha1.CatalogEntry) (held *v1alpha1.CatalogEntry, made bool, err error)
	DeleteCatalogEntry(ctx context.Context, held *v1alpha1.CatalogEntry, match api.Match) error
	OthersWithSlug(ctx context.Context, e *v1alpha1.CatalogEntry, everywhere bool) (clusters []string, err error)
	CountCatalogEntries(ctx context.Context, cluster string) (int64, error)
}

// Handler serves the catalog.
type Handler struct {
	api.Deps
	Catalog Catalog
	Orgs    Orgs
	Entries Entries
	// GlobalCluster is the logical cluster of the Global entries.
	GlobalCluster string
	// MayBind asks kcp, with the credential of the caller of the request, whether they may bind
	// an export in a logical cluster.
	MayBind func(ctx context.Context, r *http.Request, cluster string, ref v1alpha1.APIExportRef) error
	// PrivateBackends permits backends with addresses of private networks.
	PrivateBackends bool
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	mount := func(r chi.Router, base string, at func(*http.Request) owner) {
		route := func(handle func(http.ResponseWriter, *http.Request, owner) error) http.HandlerFunc {
			return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error { return handle(w, r, at(r)) })
		}
		r.Get(base, route(h.list))
		r.Post(base, route(h.create))
		r.Put(base+"/{entry}", route(h.replace))
		found := func(handle func(http.ResponseWriter, *http.Request, owner) error) http.HandlerFunc {
			return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error { return handle(w, r, h.ownerOf(r, at(r))) })
		}
		r.Get(base+"/{entry}", found(h.get))
		r.Delete(base+"/{entry}", found(h.remove))
	}
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Org)
		mount(r, "/orgs/{org}/catalog", func(r *http.Request) owner { return owner{scope: httpmw.ScopeOf(r)} })
	})
	r.Group(func(r chi.Router) {
		r.Use(httpmw.RequirePlatformAdmin)
		mount(r, "/admin/catalog", func(*http.Request) owner { return owner{} })
	})
}

// owner is what entries belong to: an Organization, or the Global catalog.
type owner struct {
	// scope is that of a member of an Organization; nil for platform admins.
	scope *tenancy.Scope
	// tenant is the Organization of an entry that a platform admin reads or deletes; nil for the
	// Global catalog.
	tenant *tenancy.Org
}

// org is the Organization; nil for the Global catalog.
func (p owner) org() *tenancy.Org {
	if p.scope == nil {
		return p.tenant
	}
	return &p.scope.Org
}

// uuid is that of the Organization; empty for the Global catalog.
func (p owner) uuid() string {
	if org := p.org(); org != nil {
		return org.UUID()
	}
	return ""
}

// refs are the objects that a change of an entry affects.
func (p owner) refs() []tenancy.Ref {
	if p.uuid() == "" {
		return []tenancy.Ref{tenancy.CatalogRef()}
	}
	return []tenancy.Ref{tenancy.OrgRef(p.uuid())}
}

// begin applies a rule to the caller and returns what judges it again. The routes of the Global
// catalog are for platform admins only, who are not judged.
func (h *Handler) begin(r *http.Request, p owner, may func(tenancy.Scope) error) (judge func(context.Context) error, err error) {
	if p.scope == nil {
		return func(context.Context) error { return nil }, nil
	}
	by, err := h.Rights.Begin(r, may)
	return by.JudgeNow, err
}

// requireChange refuses callers who may not change or delete an entry of the owner. Platform admins
// may delete all.
func (p owner) requireChange(r *http.Request, e *v1alpha1.CatalogEntry) error {
	if p.scope == nil {
		return nil
	}
	return p.scope.RequireChange(httpmw.CallerOf(r).User, e)
}

func (h *Handler) cluster(p owner) string {
	if p.scope == nil {
		return h.GlobalCluster
	}
	return p.scope.Org.ClusterID
}

// ownerOf returns the owner of the entry in the path: for a platform admin the Organization that
// has it, if there is no Global entry of that name. An Organization in its grace has no entries.
func (h *Handler) ownerOf(r *http.Request, p owner) owner {
	if p.scope != nil {
		return p
	}
	if e, uuid, ok := h.Orgs.CatalogEntryNamed(chi.URLParam(r, "entry")); ok && e.DeletionTimestamp.IsZero() {
		if org, ok := h.Views.Org(uuid); ok && !org.Deleted() {
			p.tenant = &org
		}
	}
	return p
}

// owners returns the owners of the entries that a request lists.
func (h *Handler) owners(r *http.Request, p owner) ([]owner, error) {
	if p.scope != nil {
		return []owner{p}, nil
	}
	switch r.URL.Query().Get("scope") {
	case "", "global":
		return []owner{p}, nil
	case "org":
	default:
		return nil, errs.InvalidField("query:scope", "must be global or org")
	}
	var all []owner
	for _, org := range h.Orgs.Orgs() {
		if !org.Deleted() {
			all = append(all, owner{tenant: &org})
		}
	}
	return all, nil
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, p owner) error {
	owners, err := h.owners(r, p)
	if err != nil {
		return err
	}
	var items []rest.CatalogEntry
	for _, p := range owners {
		for _, e := range h.Catalog.CatalogEntriesOf(p.uuid()) {
			if e.DeletionTimestamp.IsZero() {
				items = append(items, h.view(p, e))
			}
		}
	}
	return paging.Write(w, r, items, func(v rest.CatalogEntry) (string, string) { return v.DisplayName, v.UUID })
}

// find finds an entry of the owner that is not being deleted.
func (h *Handler) find(p owner, name string) (*v1alpha1.CatalogEntry, bool) {
	e, ok := h.Catalog.CatalogEntryIn(p.uuid(), name)
	return e, ok && e.DeletionTimestamp.IsZero()
}

// named finds the entry in the path. The answer for an entry of another owner is the same as for
// a missing one.
func (h *Handler) named(r *http.Request, p owner) (*v1alpha1.CatalogEntry, error) {
	e, ok := h.find(p, chi.URLParam(r, "entry"))
	if !ok {
		return nil, tenancy.NoSuchCatalogEntry()
	}
	return e, nil
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request, p owner) error {
	e, err := h.named(r, p)
	if err != nil {
		return err
	}
	return h.answer(w, http.StatusOK, e, p)
}

func (h *Handler) answer(w http.ResponseWriter, code int, e *v1alpha1.CatalogEntry, p owner) error {
	httpapi.Tag(w, e.ResourceVersion)
	return httpapi.Write(w, code, h.view(p, e))
}

// view is an entry of the owner in an answer.
func (h *Handler) view(p owner, e *v1alpha1.CatalogEntry) rest.CatalogEntry {
	in := ""
	if org := p.org(); org != nil {
		in = org.ClusterID
	}
	v := rest.CatalogEntry{Entry: wire.Entry(e, p.org()), Workspaces: h.Catalog.WorkspacesEnabling(e.Spec.APIExport, in)}
	if p.tenant != nil {
		v.OrgDisplayName = p.tenant.Spec.DisplayName
	}
	return v
}

// missing is the answer for an entry that was deleted after it was found in the cache.
func missing(err error) error {
	if errs.Is(err, errs.NotFound) {
		return tenancy.NoSuchCatalogEntry()
	}
	return err
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request, p owner) error {
	e, err := h.named(r, p)
	if err != nil {
		return err
	}
	if err := p.requireChange(r, e); err != nil {
		return err
	}
	return api.Change[*v1alpha1.CatalogEntry]{
		Intent: httpmw.Intent{Reduces: true, Org: p.uuid(), Facts: audit.Facts{Slug: e.Spec.Slug}},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.CatalogEntry, error) {
			return e, missing(h.Entries.DeleteCatalogEntry(ctx, e, match))
		},
		Refs: func(*v1alpha1.CatalogEntry) []tenancy.Ref { return p.refs() },
		// The controller removes what belongs to the entry before kcp removes the entry itself.
		Seen: func(**v1alpha1.CatalogEntry) bool {
			seen, there := h.Catalog.CatalogEntryIn(p.uuid(), e.Name)
			return !there || seen.UID != e.UID
		},
	}.Serve(w, r, &h.Deps)
}
