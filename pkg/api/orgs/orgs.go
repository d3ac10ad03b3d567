package orgs

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"k8s.io/utils/clock"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Views are the caches that the handler reads.
type Views interface {
	Index(user string) []v1alpha1.MembershipIndexEntry
	ByName(user string) (*v1alpha1.User, bool)
	Org(uuid string) (tenancy.Org, bool)
	UsedWorkspaces(org string, claims []v1alpha1.Claim) int
	OrgsCreatedBy(user string) []string
}

// Handler serves /api/orgs and /api/orgs/{org}.
type Handler struct {
	Views Views
	// Await waits until a condition on the caches holds. It evaluates the condition again
	// after each change that affects one of refs.
	Await func(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
	// Followed reports whether kcp has the desired bindings of all members of the Org.
	Followed func(org string) bool
	Store    waiting.Store
	Rights   httpmw.Rights
	Tree     tenancy.Tree
	// Scope, CreatedScope and DeletedScope are httpmw's middlewares for endpoints of an
	// Org: for most, for the one that reads it, and for undelete.
	Scope, CreatedScope, DeletedScope func(http.Handler) http.Handler
	// Creator finds the Orgs that are accepted and not in the caller's index yet.
	Creator tenancy.Creator
	// NewUUID makes the identity of a new Org.
	NewUUID func() string
	Clock   clock.PassiveClock

	DefaultOrgQuota       int
	DefaultWorkspaceQuota int
	DeletionGrace         time.Duration
	CreateTimeout         time.Duration
	// FollowTimeout limits the time that a write waits for the caches.
	FollowTimeout time.Duration
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.Get("/orgs", httpapi.Handle(h.list))
	r.Post("/orgs", httpapi.Handle(h.create))
	r.With(h.CreatedScope).Get("/orgs/{org}", httpapi.Handle(h.get))
	r.With(h.Scope).Patch("/orgs/{org}", httpapi.Handle(h.patch))
	r.With(h.Scope).Delete("/orgs/{org}", httpapi.Handle(h.remove))
	r.With(h.DeletedScope).Post("/orgs/{org}/undelete", httpapi.Handle(h.undelete))
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r).User
	entries := h.Views.Index(caller.Name)
	items := make([]rest.Org, 0, len(entries))
	for _, e := range entries {
		if e.WorkspaceUUID != "" || e.SoftDeletedAt != nil {
			continue
		}
		if o, ok := h.Views.Org(e.OrgUUID); ok && !o.Deleted() {
			items = append(items, h.viewOf(o, e.Role, e.OrgFirstAdmin))
		}
	}
	for _, uuid := range h.accepted(caller) {
		if tenancy.OrgRole(entries, uuid) != "" {
			continue
		}
		if o, role := h.Creator.ReadOrg(caller, uuid); role != "" && !o.Deleted() {
			items = append(items, h.viewOf(o, role, caller.Name))
		}
	}
	return paging.Write(w, r, items, func(v rest.Org) (string, string) { return v.DisplayName, v.UUID })
}

// accepted returns the UUIDs of the Orgs that a person requested, whether they exist yet or not.
func (h *Handler) accepted(u *v1alpha1.User) []string {
	uuids := h.Views.OrgsCreatedBy(u.Name)
	for _, c := range u.Spec.OrgClaims {
		if !slices.Contains(uuids, c.UUID) {
			uuids = append(uuids, c.UUID)
		}
	}
	return uuids
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r)
	claim, err := idempotency.Claim(r, "", h.NewUUID, h.Clock.Now())
	if err != nil {
		return err
	}
	// What the cache shows to be refused does not wait for other writers.
	if _, err := tenancy.ClaimOrg(caller.User, h.Views.OrgsCreatedBy(caller.User.Name), h.DefaultOrgQuota, claim); err != nil {
		return err
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Org: claim.UUID})
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := h.Store.ChangeUser(ctx, caller.User, nil, func(_ context.Context, u *v1alpha1.User) error {
		claims, err := tenancy.ClaimOrg(u, h.Views.OrgsCreatedBy(u.Name), h.DefaultOrgQuota, claim)
		if claims != nil {
			u.Spec.OrgClaims = claims
		}
		return err
	}); err != nil {
		return err
	}
	planned := tenancy.ClaimedOrg(claim)
	planned.CreationTimestamp = claim.Request.RequestedAt
	return h.created(w, r, planned)
}

// created answers 201 if the Org becomes Ready and is in its creator's index in time,
// and 202 otherwise. Its creator can read it either way.
func (h *Handler) created(w http.ResponseWriter, r *http.Request, planned *v1alpha1.Organization) error {
	user := httpmw.CallerOf(r).User.Name
	org := tenancy.Org{Organization: planned}
	code := waiting.Made(r, h.CreateTimeout, h.Await, refs(planned.Name, user), func() bool {
		seen, ok := h.Views.Org(planned.Name)
		if !ok {
			return false
		}
		org = seen
		return seen.Status.Phase == v1alpha1.PhaseReady && tenancy.OrgRole(h.Views.Index(user), planned.Name) != ""
	})
	if code == http.StatusAccepted {
		waiting.Until(r, h.FollowTimeout, h.Await, refs(planned.Name, user), func() bool {
			u, ok := h.Views.ByName(user)
			if !ok {
				return true
			}
			_, role := h.Creator.ReadOrg(u, planned.Name)
			return role != "" || tenancy.OrgRole(h.Views.Index(user), planned.Name) != ""
		})
	}
	w.Header().Set("Location", "/api/orgs/"+planned.Name)
	httpapi.Tag(w, org.ResourceVersion)
	return httpapi.Write(w, code, h.viewOf(org, v1alpha1.RoleAdmin, h.firstAdmin(user, org)))
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	httpapi.Tag(w, scope.Org.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(scope.Org, scope.OrgRole, h.firstAdmin(scope.User, scope.Org)))
}

func (h *Handler) patch(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error { return s.RequireOrgAdmin("change it") })
	if err != nil {
		return err
	}
	var in rest.UpdateOrgRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	edits, intent, err := editsOf(in)
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	if len(edits) == 0 && match == nil {
		return h.get(w, r)
	}
	ctx, cancel, err := waiting.Write(r, intent)
	if err != nil {
		return err
	}
	defer cancel()
	changed, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, match, func(ctx context.Context, o *v1alpha1.Organization) error {
		if err := by.Judge(ctx, o); err != nil {
			return err
		}
		for _, edit := range edits {
			edit(&o.Spec)
		}
		return nil
	})
	if err != nil {
		return err
	}
	waiting.Until(r, h.FollowTimeout, h.Await, refs(changed.Name, scope.User), func() bool {
		seen, ok := h.Views.Org(changed.Name)
		return ok && seen.Generation >= changed.Generation && h.indexed(scope.User, seen) && (in.DefaultAccess == nil || h.Followed(changed.Name))
	})
	org := tenancy.Org{Organization: changed, ClusterID: scope.Org.ClusterID}
	httpapi.Tag(w, org.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(org, scope.OrgRole, h.firstAdmin(scope.User, org)))
}

// refs are the objects that a caller waits for after a write to the Org: the Org, and the caller's
// own row of it.
func refs(org, caller string) []tenancy.Ref {
	return []tenancy.Ref{tenancy.OrgRef(org), tenancy.UserRef(caller)}
}

// indexed reports whether the User's index has the current name of the Org.
func (h *Handler) indexed(user string, o tenancy.Org) bool {
	entries := h.Views.Index(user)
	for _, e := range entries {
		if e.OrgUUID == o.UUID() && e.OrgDisplayName != tenancy.IndexedName(o.Spec.DisplayName, len(entries)) {
			return false
		}
	}
	return true
}
