package groups

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Caches find people by their groups, and what groups give.
type Caches interface {
	// SomeWithGroup returns at most limit of the Users with a group.
	SomeWithGroup(hash v1alpha1.GroupHash, limit int) []*v1alpha1.User
	MembershipsIn(orgCluster string) []*v1alpha1.Membership
}

// KCP reads Users from kcp.
type KCP interface {
	GetUser(ctx context.Context, name string) (*v1alpha1.User, error)
}

// Handler serves /api/orgs/{org}/groups.
type Handler struct {
	api.Deps
	Groups Caches
	KCP    KCP
	// MaxAge is for how long groups count after the issue of the credential that says them.
	MaxAge time.Duration
	// Known is false if no credential says groups.
	Known bool
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Org)
		r.Get("/orgs/{org}/groups", httpapi.Handle(h.list))
		r.Post("/orgs/{org}/groups", httpapi.Handle(h.create))
		r.Delete("/orgs/{org}/groups/{mapping}", httpapi.Handle(h.remove))
	})
}

func mayMap(s tenancy.Scope) error { return s.RequireOrgAdmin("map groups") }

func (h *Handler) viewOf(m v1alpha1.GroupMapping) rest.GroupMapping {
	return rest.GroupMapping{
		ID: m.ID, Group: m.Group, Role: rest.Role(m.Role), Workspace: m.Workspace, CreatedBy: m.CreatedBy, CreatedAt: m.CreatedAt,
		People: h.people(m.Group),
	}
}

// people counts whom a mapping lets in now. It looks at no more people than the groups of an Organization let in.
func (h *Handler) people(group string) int {
	some := h.Groups.SomeWithGroup(tenancy.HashGroup(group), tenancy.MaxGroupMembers)
	return tenancy.LetIn(some, h.Rights.Clock.Now(), h.MaxAge)
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := mayMap(*scope); err != nil {
		return err
	}
	items := make([]rest.GroupMapping, 0, len(scope.Org.Spec.Groups))
	for _, m := range scope.Org.Spec.Groups {
		items = append(items, h.viewOf(m))
	}
	return paging.Write(w, r, items, func(v rest.GroupMapping) (string, string) { return v.Group, v.ID })
}

// asked reads and validates a mapping.
func (h *Handler) asked(r *http.Request, scope *tenancy.Scope) (m v1alpha1.GroupMapping, err error) {
	var in rest.CreateGroupMapping
	if err := httpapi.Read(r, &in); err != nil {
		return m, err
	}
	m = v1alpha1.GroupMapping{Group: in.Group, Role: v1alpha1.Role(in.Role), Workspace: in.Workspace, CreatedBy: scope.User}
	if err := tenancy.CheckGroup("group", m.Group); err != nil {
		return m, err
	}
	if err := tenancy.CheckRole("role", m.Role); err != nil {
		return m, err
	}
	if m.Workspace != "" {
		if ws, ok := h.Views.Workspace(scope.Org.UUID(), m.Workspace); !ok || ws.Deleted() {
			return m, errs.InvalidField("workspace", "must be the UUID of a workspace of this organization")
		}
	}
	if !h.Known {
		return m, errs.New(errs.NotImplemented,
			"this hub does not know the groups of anybody; the operator has to set --oidc-groups-claim or --token-file")
	}
	return m, nil
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, mayMap)
	if err != nil {
		return err
	}
	asked, err := h.asked(r, scope)
	if err != nil {
		return err
	}
	key, _, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	asked.ID = idempotency.ID(r, key, scope.Org.UUID()+"/groups", h.NewUUID)
	asked.CreatedAt = metav1.NewTime(h.Rights.Clock.Now()).Rfc3339Copy()
	// What the cache shows to be there, or to be refused, does not wait for the other writers of the Organization.
	switch mappings, m, err := tenancy.MapGroup(scope.Org.Organization, asked); {
	case err != nil:
		return err
	case len(mappings) == len(scope.Org.Spec.Groups):
		return httpapi.Write(w, http.StatusOK, h.viewOf(m))
	}
	made := asked
	return api.Change[*v1alpha1.Organization]{
		Intent: httpmw.Intent{Workspace: asked.Workspace, Object: asked.ID, Facts: audit.Facts{Role: string(asked.Role), Group: asked.Group}},
		Write: func(ctx context.Context, _ api.Match) (*v1alpha1.Organization, error) {
			return h.Store.ChangeOrganization(ctx, scope.Org.Organization, nil, func(ctx context.Context, o *v1alpha1.Organization) error {
				standing, err := by.JudgeStanding(ctx, o)
				if err != nil {
					return err
				}
				mappings, m, err := tenancy.MapGroup(o, asked)
				if err != nil {
					return err
				}
				if standing.Prolonged(m) && len(mappings) > len(o.Spec.Groups) {
					u, err := h.KCP.GetUser(ctx, scope.User)
					if err != nil {
						return err
					}
					if err := tenancy.CheckMapper(u, m.Group, standing.Own()); err != nil {
						return err
					}
				}
				o.Spec.Groups, made = mappings, m
				return nil
			})
		},
		Refs: refs(scope), Seen: h.seen(scope),
		View: func(*v1alpha1.Organization) (any, string) { return h.viewOf(made), "" },
		Code: http.StatusCreated,
	}.Serve(w, r, &h.Deps)
}

func refs(scope *tenancy.Scope) func(*v1alpha1.Organization) []tenancy.Ref {
	return func(*v1alpha1.Organization) []tenancy.Ref { return []tenancy.Ref{tenancy.OrgRef(scope.Org.UUID())} }
}

func (h *Handler) seen(scope *tenancy.Scope) func(**v1alpha1.Organization) bool {
	return func(o **v1alpha1.Organization) bool {
		seen, ok := h.Views.Org(scope.Org.UUID())
		return !ok || seen.Generation >= (*o).Generation
	}
}

// remove answers when nobody has anything by the mapping any more.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, mayMap)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "mapping")
	held, ok := tenancy.MappingOf(scope.Org.Organization, id)
	if !tenancy.IsUUID(id) || !ok {
		return noSuchMapping()
	}
	seen := h.seen(scope)
	var people []string
	for _, m := range h.Groups.MembershipsIn(scope.Org.ClusterID) {
		if gives(m, id) {
			people = append(people, m.Spec.UserRef.Name)
		}
	}
	return api.Change[*v1alpha1.Organization]{
		Ends:   people,
		Intent: httpmw.Intent{Reduces: true, Workspace: held.Workspace, Object: id, Facts: audit.Facts{Group: held.Group}},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.Organization, error) {
			return h.Store.ChangeOrganization(ctx, scope.Org.Organization, match, func(ctx context.Context, o *v1alpha1.Organization) error {
				if err := by.Judge(ctx, o); err != nil {
					return err
				}
				// Another request may have removed it meanwhile.
				tenancy.UnmapGroup(o, id)
				return nil
			})
		},
		Refs: refs(scope),
		Seen: func(o **v1alpha1.Organization) bool {
			return seen(o) && !slices.ContainsFunc(h.Groups.MembershipsIn(scope.Org.ClusterID), func(m *v1alpha1.Membership) bool {
				return gives(m, id)
			})
		},
	}.Serve(w, r, &h.Deps)
}

// gives reports whether a Membership has a part by a mapping.
func gives(m *v1alpha1.Membership, mapping string) bool {
	return slices.ContainsFunc(tenancy.ExtrasOf(m), func(x v1alpha1.MembershipExtra) bool { return x.Source == tenancy.GroupSource(mapping) })
}

func noSuchMapping() error {
	return errs.New(errs.NotFound, "there is no mapping of a group of that ID in this organization")
}
