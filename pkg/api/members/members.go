package members

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"k8s.io/apimachinery/pkg/util/validation"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Memberships is the part of store.Store that reads Memberships from kcp.
type Memberships interface {
	// GetMembership returns nil if kcp has none of that name.
	GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error)
	ListMemberships(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error)
}

// Handler serves …/members and …/memberships/me of Organizations and Workspaces.
type Handler struct {
	api.Deps
	Memberships Memberships
	// Followed reports whether the bindings of a User are as desired in all Workspaces of
	// the Organization, or in the one Workspace given.
	Followed func(org, workspace, user string) bool
	// LimitAdditions refuses to add a person if the caller has added too many others lately.
	LimitAdditions func(r *http.Request, person string) error
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Org)
		r.Get("/orgs/{org}/members", httpapi.Handle(h.list))
		r.Post("/orgs/{org}/members", httpapi.Handle(h.addToOrg))
		r.Get("/orgs/{org}/members/{user}", httpapi.Handle(h.get))
		r.Patch("/orgs/{org}/members/{user}", httpapi.Handle(h.changeInOrg))
		r.Delete("/orgs/{org}/members/{user}", httpapi.Handle(h.removeFromOrg))
		r.Delete("/orgs/{org}/memberships/me", httpapi.Handle(h.leaveOrg))
	})
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Definition)
		const base = "/orgs/{org}/workspaces/{ws}"
		r.Get(base+"/members", httpapi.Handle(h.list))
		r.Post(base+"/members", httpapi.Handle(h.addToWorkspace))
		r.Get(base+"/members/{user}", httpapi.Handle(h.get))
		r.Patch(base+"/members/{user}", httpapi.Handle(h.changeInWorkspace))
		r.Delete(base+"/members/{user}", httpapi.Handle(h.removeFromWorkspace))
		r.Delete(base+"/memberships/me", httpapi.Handle(h.leaveWorkspace))
	})
}

func (h *Handler) viewOf(m *v1alpha1.Membership) rest.Member {
	u, _ := h.Views.ByName(m.Spec.UserRef.Name)
	if e := tenancy.EffectiveAt(m, h.Rights.Clock.Now()); e != nil {
		m = e
	}
	return wire.Member(m, u)
}

// list answers with the members of the Organization, or of the Workspace if the scope has one.
func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	held := h.Views.MembershipsAt(scope.Org.ClusterID, scope.WorkspaceUUID())
	items := make([]rest.Member, 0, len(held))
	for _, m := range held {
		items = append(items, h.viewOf(m))
	}
	return paging.Write(w, r, items, func(v rest.Member) (string, string) { return v.DisplayName, v.User })
}

// get answers with one member. It is the Location of a new member, and returns the ETag for
// If-Match.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	user, err := named(r)
	if err != nil {
		return err
	}
	m, ok := h.member(httpmw.ScopeOf(r), user)
	if !ok {
		return tenancy.NotAMember(user)
	}
	httpapi.Tag(w, m.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(m))
}

// member finds the Membership of a User in the scope in the cache.
func (h *Handler) member(scope *tenancy.Scope, user string) (*v1alpha1.Membership, bool) {
	return h.Views.Membership(scope.Org.ClusterID, tenancy.MembershipName(user, scope.WorkspaceUUID()))
}

// person finds the User of a userRef. People are named by metadata.name only (O-15).
func (h *Handler) person(name string) error {
	if name == "" {
		return errs.InvalidField("userRef.name", "must name a person")
	}
	if u, ok := h.Views.ByName(name); !ok || u.Status.DeletionRequestedAt != nil || !u.DeletionTimestamp.IsZero() {
		return errs.InvalidField("userRef.name", "there is no person of this name; find people with GET /api/users?q=")
	}
	return nil
}

// named is the User in the path. Only a valid name may become part of a Membership's name:
// "{workspace}.{user}" would otherwise name a Membership of a Workspace, and other characters
// would make an invalid URL.
func named(r *http.Request) (string, error) {
	user := chi.URLParam(r, "user")
	if len(validation.IsDNS1123Label(user)) > 0 {
		return "", errs.New(errs.NotFound, "no member has such a name")
	}
	return user, nil
}

// add adds a User to the Organization or Workspace of the scope. It answers 201, or 200 if an equal
// Membership exists, or 202 if the bindings are not in place in time or the caller does not want to
// wait. A repeated Idempotency-Key returns the Membership that the first request created.
func (h *Handler) add(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, by httpmw.Author, e tenancy.MemberEdit) error {
	_, key, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	if first, ok := h.madeWith(scope, key); ok {
		return h.answerExisting(w, r, scope, first)
	}
	if err := h.person(e.User); err != nil {
		return err
	}
	if _, member := h.member(scope, e.User); !member {
		if err := tenancy.CheckMemberships(e.User, h.Views.Index(e.User)); err != nil {
			return err
		}
	}
	if err := h.LimitAdditions(r, e.User); err != nil {
		return err
	}
	e.Add, e.IdempotencyKey = true, key
	d, err := h.edit(r, scope, &by, e, nil)
	if err != nil {
		return err
	}
	if d.change.User == "" {
		m, err := h.present(r, scope, e.User)
		if err != nil {
			return err
		}
		return h.answerExisting(w, r, scope, m)
	}
	code := http.StatusOK
	if d.written {
		code = http.StatusCreated
		w.Header().Set("Location", r.URL.Path+"/"+e.User)
	}
	return h.finish(w, r, scope, code, d, nil)
}

// madeWith finds the Membership that the caller created with the key.
func (h *Handler) madeWith(scope *tenancy.Scope, key string) (*v1alpha1.Membership, bool) {
	if key == "" {
		return nil, false
	}
	for _, m := range h.Views.MembershipsAt(scope.Org.ClusterID, scope.WorkspaceUUID()) {
		if tenancy.MadeWith(m, scope.User, key) {
			return m, true
		}
	}
	return nil, false
}

// answerExisting answers with an existing Membership.
func (h *Handler) answerExisting(w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, m *v1alpha1.Membership) error {
	org, _ := h.Views.Org(scope.Org.UUID())
	if org.Organization != nil {
		if c, ok := tenancy.ChangeOf(org.Organization, m.Spec.UserRef.Name, scope.WorkspaceUUID()); ok && tenancy.ChangeApplies(c, m) {
			return errs.New(errs.Conflict, "the membership of "+m.Spec.UserRef.Name+" is being changed at the moment; repeat the request afterwards")
		}
	}
	return h.answer(w, r, scope, http.StatusOK, m, nil)
}

// answer waits until index and bindings follow the Membership and answers with it: with code,
// or with 202 if they do not follow in time. ending is nil unless the request took rights.
func (h *Handler) answer(
	w http.ResponseWriter, r *http.Request, scope *tenancy.Scope, code int, m *v1alpha1.Membership, ending *api.Ending,
) error {
	user := m.Spec.UserRef.Name
	workspace := scope.WorkspaceUUID()
	if !h.Until(r, refs(scope, user), func() bool {
		seen, ok := h.member(scope, user)
		if !ok || seen.UID == m.UID && seen.Generation < m.Generation {
			return false
		}
		m = seen
		if !h.indexed(scope.Org.UUID(), workspace, seen) {
			return false
		}
		ending.HubRefuses()
		if !h.Followed(scope.Org.UUID(), workspace, user) {
			return false
		}
		ending.KCPRefuses()
		return seen.Status.ObservedGeneration == seen.Generation
	}) {
		code = http.StatusAccepted
	}
	return h.write(w, code, m, ending)
}

// write answers with a Membership, and with the receipt of what it takes if the client asks for that.
func (h *Handler) write(w http.ResponseWriter, code int, m *v1alpha1.Membership, ending *api.Ending) error {
	view := h.viewOf(m)
	view.Receipt = ending.Receipt(w)
	httpapi.Tag(w, m.ResourceVersion)
	return httpapi.Write(w, code, view)
}

// refs are the references that a change of the User's Membership touches: the User, the
// Organization, which has the pending change, and the Workspace.
func refs(scope *tenancy.Scope, user string) []tenancy.Ref {
	all := []tenancy.Ref{tenancy.UserRef(user), tenancy.OrgRef(scope.Org.UUID())}
	if uuid := scope.WorkspaceUUID(); uuid != "" {
		all = append(all, tenancy.WorkspaceRef(uuid))
	}
	return all
}

// indexed reports whether the User's index has the row with what the Membership gives.
func (h *Handler) indexed(org, workspace string, m *v1alpha1.Membership) bool {
	row := tenancy.Row(h.Views.Index(m.Spec.UserRef.Name), org, workspace)
	if m.Spec.Role == "" && !m.Spec.Manager {
		return row == nil
	}
	return row != nil && row.Role == m.Spec.Role && row.Manager == m.Spec.Manager
}
