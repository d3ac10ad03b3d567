package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func specOf(in rest.CatalogEntryRequest) v1alpha1.CatalogEntrySpec {
	return v1alpha1.CatalogEntrySpec{
		Slug: in.Slug, DisplayName: in.DisplayName, Description: in.Description, Version: in.Version,
		APIExport: v1alpha1.APIExportRef(in.APIExport),
		Backend:   (*v1alpha1.CatalogBackend)(in.Backend), UI: (*v1alpha1.CatalogUI)(in.UI), MemberResources: in.MemberResources,
	}
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request, p owner) error {
	judge, err := h.begin(r, p, tenancy.Scope.RequirePublish)
	if err != nil {
		return err
	}
	var in rest.CatalogEntryRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	spec := specOf(in)
	if err := tenancy.CheckCatalogSpec(spec, h.PrivateBackends); err != nil {
		return err
	}
	workspace, err := tenancy.CheckCatalogExport(h.Tree, p.uuid(), spec.APIExport)
	if err != nil {
		return err
	}
	force, err := p.force(r)
	if err != nil {
		return err
	}
	_, hash, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := api.Write(r, httpmw.Intent{Facts: audit.Facts{Slug: spec.Slug, Export: spec.APIExport.Path + ":" + spec.APIExport.Name, Force: force}})
	if err != nil {
		return err
	}
	defer cancel()
	caller := httpmw.CallerOf(r).User
	e, repeated := h.repeated(p, caller.Name, hash)
	if !repeated {
		if err := h.room(p); err != nil {
			return err
		}
		if err := h.mayPublish(ctx, r, p, workspace, spec.APIExport); err != nil {
			return err
		}
		if e, err = h.publish(ctx, p, tenancy.NewCatalogEntry(p.uuid(), spec, caller, hash), force, judge); err != nil {
			return err
		}
	}
	name := e.Name
	seen := func() (there bool) {
		newer, there := h.find(p, name)
		if there {
			e = newer
		}
		return there
	}
	code := h.Made(r, p.refs(), func() bool { return seen() && reconciled(e) }, seen)
	w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/")+"/"+name)
	return h.answer(w, code, e, p)
}

// force reports whether a Global entry takes its slug from the Organizations that have it.
func (p owner) force(r *http.Request) (bool, error) {
	if p.scope != nil {
		return false, nil
	}
	return httpapi.Flag(r, "force")
}

// room refuses another entry if the cache shows that the Organization has reached its limit. The
// Global catalog has no limit.
func (h *Handler) room(p owner) error {
	if p.scope == nil {
		return nil
	}
	return tenancy.CheckCatalogQuota(len(h.Catalog.CatalogEntriesOf(p.uuid())))
}

// fits refuses an entry that was written to kcp if kcp now has more entries than the limit.
func (h *Handler) fits(ctx context.Context, p owner) error {
	if p.scope == nil {
		return nil
	}
	n, err := h.Entries.CountCatalogEntries(ctx, h.cluster(p))
	if err != nil {
		return err
	}
	return tenancy.CheckCatalogQuota(int(n) - 1)
}

// reconciled reports whether the controller has found the export of the entry.
func reconciled(e *v1alpha1.CatalogEntry) bool {
	return e.Status.ObservedGeneration == e.Generation && e.Status.Phase == v1alpha1.PhaseReady
}

// repeated finds the entry that an earlier request of the caller with the Idempotency-Key made.
func (h *Handler) repeated(p owner, caller, hash string) (*v1alpha1.CatalogEntry, bool) {
	if hash == "" {
		return nil, false
	}
	all := h.Catalog.CatalogEntriesOf(p.uuid())
	if i := slices.IndexFunc(all, func(e *v1alpha1.CatalogEntry) bool { return isOf(e, caller, hash) }); i >= 0 {
		return all[i], true
	}
	return nil, false
}

// isOf reports whether an entry was made by the caller with the Idempotency-Key.
func isOf(e *v1alpha1.CatalogEntry, caller, hash string) bool {
	return hash != "" && e.DeletionTimestamp.IsZero() &&
		e.Labels[v1alpha1.IdempotencyKeyLabel] == hash && e.Annotations[v1alpha1.CreatedByAnnotation] == caller
}

// mayPublish refuses callers who could not bind the export themselves. workspace is the
// Workspace of the Organization that has the export; empty for one of a provider.
func (h *Handler) mayPublish(ctx context.Context, r *http.Request, p owner, workspace string, ref v1alpha1.APIExportRef) error {
	if p.scope == nil {
		return nil
	}
	org, rows := p.scope.Org, h.Views.Index(p.scope.User)
	all := h.Views.Workspaces(org.UUID())
	if workspace != "" {
		all = slices.DeleteFunc(all, func(w tenancy.Workspace) bool { return w.UUID != workspace })
		if _, ok := tenancy.PublishingWorkspace(rows, org, all); !ok {
			return tenancy.RoleTooLow("only an admin of the workspace that has the export may publish it, while the workspace is Ready; ask one of its admins")
		}
		return nil
	}
	at, ok := tenancy.PublishingWorkspace(rows, org, all)
	if !ok {
		return errs.New(errs.Forbidden, "kcp is asked whether you may bind the export, in a workspace of this organization that you administer, and there is none; create one, or ask an admin of the organization to publish it")
	}
	err := h.MayBind(ctx, r, at.ClusterID, ref)
	if errs.Is(err, errs.Forbidden) {
		return errs.Wrap(errs.Forbidden, err, "kcp does not let you bind this export, or there is none of this name; ask its provider for the right to bind it")
	}
	return err
}

// publish creates an entry, unless another one has its slug or there are too many. It writes before
// it reads the other entries: of two simultaneous requests with one slug, at least one finds the
// entry of the other and deletes its own. It counts after the write for the same reason, and judges
// the author, whose right may have ended since the request came in. force takes the slug from the
// entries of Organizations; see tenancy.CatalogClash.
func (h *Handler) publish(ctx context.Context, p owner, wanted *v1alpha1.CatalogEntry, force bool, judge func(context.Context) error) (*v1alpha1.CatalogEntry, error) {
	caller, hash := wanted.Annotations[v1alpha1.CreatedByAnnotation], wanted.Labels[v1alpha1.IdempotencyKeyLabel]
	if err := h.taken(p, wanted.Spec.Slug, h.Catalog.CatalogClusters(wanted.Spec.Slug), force); err != nil {
		return nil, err
	}
	e, made, err := h.Entries.CreateCatalogEntry(ctx, h.cluster(p), wanted)
	switch {
	case err != nil:
		return nil, err
	case made:
	case isOf(e, caller, hash):
		return e, nil
	case !e.DeletionTimestamp.IsZero():
		return nil, errs.New(errs.Conflict, "the catalog entry that has the slug is being deleted; repeat the request when it is gone")
	default:
		return nil, h.taken(p, wanted.Spec.Slug, []string{h.cluster(p)}, force)
	}
	others, err := h.Entries.OthersWithSlug(ctx, e, p.scope == nil)
	if err == nil {
		err = h.taken(p, e.Spec.Slug, others, force)
	}
	if err == nil {
		err = h.fits(ctx, p)
	}
	if err == nil {
		err = judge(ctx)
	}
	if err == nil {
		return e, nil
	}
	if failed := h.Entries.DeleteCatalogEntry(ctx, e, nil); failed != nil && !errs.Is(failed, errs.NotFound) {
		return nil, failed
	}
	return nil, err
}

// taken refuses a slug if an entry of the same owner has it, or an entry that the same people see.
// force lets a Global entry have a slug that Organizations have.
func (h *Handler) taken(p owner, slug string, clusters []string, force bool) error {
	refuse := func(message string, causes ...errs.Cause) error {
		return errs.New(errs.AlreadyExists, message, append(causes, errs.Cause{Type: "FieldValueDuplicate", Field: "slug", Message: message})...)
	}
	if slices.Contains(clusters, h.cluster(p)) {
		return refuse("there is a catalog entry with the slug " + slug + " already; choose another one")
	}
	orgs := map[string]string{}
	for _, cluster := range clusters {
		if org, ok := h.Orgs.OrgByCluster(cluster); ok && org.Organization != nil {
			orgs[org.UUID()] = org.Spec.DisplayName
			continue
		}
		if p.scope != nil && cluster == h.GlobalCluster {
			return refuse("there is a global catalog entry with the slug " + slug + "; choose another one")
		}
	}
	if p.scope != nil || force || len(orgs) == 0 {
		return nil
	}
	var causes []errs.Cause
	for _, uuid := range slices.SortedFunc(maps.Keys(orgs), func(a, b string) int { return cmp.Or(cmp.Compare(orgs[a], orgs[b]), cmp.Compare(a, b)) }) {
		causes = append(causes, errs.Cause{Type: "SlugInOrganization", Field: "slug", Message: fmt.Sprintf("%s (%s)", orgs[uuid], uuid)})
	}
	who, them, theirs := "1 organization has", "it", "its entry"
	if len(orgs) > 1 {
		who, them, theirs = fmt.Sprintf("%d organizations have", len(orgs)), "them", "their entries"
	}
	return refuse(fmt.Sprintf("%s a catalog entry with the slug %s; choose another one, ask %s to delete %s, or repeat the request with ?force=true to take the slug", who, slug, them, theirs), causes...)
}

func (h *Handler) replace(w http.ResponseWriter, r *http.Request, p owner) error {
	var in rest.CatalogEntryRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	spec := specOf(in)
	e, err := h.named(r, p)
	if err != nil {
		return err
	}
	judge, err := h.beginChange(r, p, e)
	if err != nil {
		return err
	}
	if err := tenancy.CheckCatalogLocked(e.Spec, spec); err != nil {
		return err
	}
	if err := tenancy.CheckCatalogSpec(spec, h.PrivateBackends); err != nil {
		return err
	}
	return api.Change[*v1alpha1.CatalogEntry]{
		Intent: httpmw.Intent{Facts: audit.Facts{Slug: e.Spec.Slug, Fields: replace(e.Spec.DeepCopy(), &spec)}},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.CatalogEntry, error) {
			return h.replaced(ctx, e, match, spec, judge)
		},
		Refs: func(*v1alpha1.CatalogEntry) []tenancy.Ref { return p.refs() },
		Seen: func(changed **v1alpha1.CatalogEntry) bool {
			seen, ok := h.find(p, e.Name)
			if !ok || seen.Generation < (*changed).Generation {
				return false
			}
			*changed = seen
			return true
		},
		View: func(e *v1alpha1.CatalogEntry) (any, string) { return h.view(p, e), e.ResourceVersion },
	}.Serve(w, r, &h.Deps)
}

// beginChange is begin for a change of an entry. What it says gives rights in Workspaces that have the API, so that its
// publisher must still be one who could publish it. Admins of the Organization are admins there anyway (O-15).
func (h *Handler) beginChange(r *http.Request, p owner, e *v1alpha1.CatalogEntry) (judge func(context.Context) error, err error) {
	begun, err := h.begin(r, p, func(s tenancy.Scope) error { return s.RequireChange(httpmw.CallerOf(r).User, e) })
	if err != nil || p.scope == nil || p.scope.OrgRole.AtLeast(v1alpha1.RoleAdmin) {
		return begun, err
	}
	workspace, err := tenancy.CheckCatalogExport(h.Tree, p.uuid(), e.Spec.APIExport)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := begun(ctx); err != nil {
			return err
		}
		return h.mayPublish(ctx, r, p, workspace, e.Spec.APIExport)
	}, nil
}

// replaced sets the spec of an entry. It takes the change back if the right of its author has ended
// before kcp had it.
func (h *Handler) replaced(ctx context.Context, e *v1alpha1.CatalogEntry, match api.Match, spec v1alpha1.CatalogEntrySpec,
	judge func(context.Context) error,
) (*v1alpha1.CatalogEntry, error) {
	var before v1alpha1.CatalogEntrySpec
	changed, err := h.Store.ChangeCatalogEntry(ctx, e, match, func(ctx context.Context, held *v1alpha1.CatalogEntry) error {
		before = *held.Spec.DeepCopy()
		replace(&held.Spec, &spec)
		return judge(ctx)
	})
	if err != nil {
		return nil, missing(err)
	}
	lost := judge(ctx)
	if lost == nil {
		return changed, nil
	}
	_, err = h.Store.ChangeCatalogEntry(ctx, changed, nil, func(_ context.Context, held *v1alpha1.CatalogEntry) error {
		if held.Generation == changed.Generation {
			replace(&held.Spec, &before)
		}
		return nil
	})
	return nil, cmp.Or(err, lost)
}

// replace sets the fields of the spec that are not immutable, and returns the names of those that
// change.
func replace(held, wanted *v1alpha1.CatalogEntrySpec) (fields []string) {
	for _, f := range []struct {
		name    string
		changes bool
		set     func()
	}{
		{"description", held.Description != wanted.Description, func() { held.Description = wanted.Description }},
		{"displayName", held.DisplayName != wanted.DisplayName, func() { held.DisplayName = wanted.DisplayName }},
		{"memberResources", !equality.Semantic.DeepEqual(held.MemberResources, wanted.MemberResources), func() { held.MemberResources = wanted.MemberResources }},
		{"ui", icon(held) != icon(wanted), func() { held.UI = wanted.UI }},
		{"version", held.Version != wanted.Version, func() { held.Version = wanted.Version }},
	} {
		if f.changes {
			f.set()
			fields = append(fields, f.name)
		}
	}
	return fields
}

func icon(spec *v1alpha1.CatalogEntrySpec) string {
	if spec.UI == nil {
		return ""
	}
	return spec.UI.IconURL
}
