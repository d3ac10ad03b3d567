package invitations

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Handler serves …/invitations.
type Handler struct {
	api.Deps
	*Service
	Cookies httpmw.InvitationCookies
	// Count counts what happens to Invitations: "made", or the state that an answer gives.
	Count func(event string)
	// Followed reports whether the bindings of a User are as desired in all Workspaces of the
	// Organization, or in the one Workspace given.
	Followed func(org, workspace, user string) bool
	// LimitLooks limits the requests of a peer that present a secret. It is a middleware of httpmw.
	LimitLooks func(http.Handler) http.Handler
	// NewID returns the name of a new Invitation: a version 7 UUID, so that other replicas know that it is
	// new. NewSecret returns 256 random bits in base64url.
	NewID, NewSecret func() string
}

// Mount adds the routes below /api that need a login.
func (h *Handler) Mount(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Org)
		h.mountAt(r, "/orgs/{org}/invitations")
	})
	r.Group(func(r chi.Router) {
		r.Use(h.Scopes.Definition)
		h.mountAt(r, "/orgs/{org}/workspaces/{ws}/invitations")
	})
	r.Get("/users/me/invitations", httpapi.Handle(h.mine))
	r.With(h.LimitLooks).Post("/invitations/{invitation}/accept", httpapi.Handle(h.accept))
	r.With(h.LimitLooks).Post("/invitations/{invitation}/decline", httpapi.Handle(h.decline))
}

func (h *Handler) mountAt(r chi.Router, base string) {
	r.Get(base, httpapi.Handle(h.list))
	r.Post(base, httpapi.Handle(h.create))
	r.Delete(base+"/{invitation}", httpapi.Handle(h.revoke))
}

// MountOpen adds the route at the root of the hub that needs no login. It is behind httpmw.Recognize.
func (h *Handler) MountOpen(r chi.Router) {
	r.With(h.LimitLooks).Get("/api/invitations/{invitation}", httpapi.Handle(h.show))
}

func (h *Handler) viewOf(in invited) rest.Invitation {
	s := in.Spec
	return rest.Invitation{
		ID: in.Name, State: string(h.state(in)), Role: rest.Role(s.Role), Scope: string(s.Scope), Workspace: tenancy.InvitedWorkspace(s),
		Email: s.Email, Note: s.Note, InvitedBy: s.InvitedBy.Name, CreatedAt: in.CreationTimestamp, ExpiresAt: s.ExpiresAt, AcceptedBy: in.Status.AcceptedBy,
		MembershipExpiresAt: s.MembershipExpiresAt,
	}
}

// at are the Invitations to the Organization, or to the Workspace if the scope has one.
func (h *Handler) at(scope *tenancy.Scope) (all []invited) {
	for _, i := range h.Invitations.InvitationsIn(scope.Org.ClusterID) {
		if tenancy.InvitedWorkspace(i.Spec) == scope.WorkspaceUUID() {
			all = append(all, invited{Invitation: i, org: scope.Org, workspace: scope.Workspace})
		}
	}
	return all
}

// list has all that is kept, for those who may invite.
func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := tenancy.MayInvite(*scope); err != nil {
		return err
	}
	var items []rest.Invitation
	for _, in := range h.at(scope) {
		items = append(items, h.viewOf(in))
	}
	return paging.Write(w, r, items, func(v rest.Invitation) (string, string) { return v.Email, v.ID })
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, tenancy.MayInvite)
	if err != nil {
		return err
	}
	spec, err := h.specOf(r, by)
	if err != nil {
		return err
	}
	if by, err = by.Under(tenancy.MayInviteAs(spec.Role)); err != nil {
		return err
	}
	if err := h.byGroup(scope, *spec); err != nil {
		return err
	}
	key, _, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	secret := h.NewSecret()
	spec.SecretHash = tenancy.InvitationHash(secret)
	id := idempotency.ID(r, key, scope.Org.UUID()+"/"+scope.WorkspaceUUID()+"/invitations", h.NewID)
	c := v1alpha1.InvitationChange{Name: id, Invitation: spec, By: scope.User, RequestedAt: tenancy.DecisionTime(h.Now())}
	in := invited{Invitation: tenancy.NewInvitation(c), org: scope.Org, workspace: scope.Workspace}
	in.CreationTimestamp = metav1.NewTime(c.RequestedAt.Time).Rfc3339Copy()
	return api.Change[invited]{
		Intent: httpmw.Intent{Object: id, Facts: factsOf(*spec)},
		Write: func(ctx context.Context, _ api.Match) (invited, error) {
			_, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, nil, func(ctx context.Context, o *v1alpha1.Organization) error {
				if err := by.Judge(ctx, o); err != nil {
					return err
				}
				all, err := h.KCP.ListInvitations(ctx, scope.Org.ClusterID)
				if err != nil {
					return err
				}
				changes, err := tenancy.DecideInvitation(o, all, c, h.Now())
				if changes != nil {
					o.Spec.InvitationChanges = changes
				}
				return err
			})
			return in, err
		},
		Refs: func(invited) []tenancy.Ref { return []tenancy.Ref{tenancy.OrgRef(scope.Org.UUID())} },
		Seen: func(in *invited) bool {
			seen, ok := h.Invitations.Invitation(id)
			if ok {
				in.Invitation = seen
			}
			return ok
		},
		Done: func(invited) {
			h.Count("made")
			w.Header().Set("Location", r.URL.Path+"/"+id)
		},
		View: func(in invited) (any, string) {
			return rest.CreatedInvitation{Invitation: h.viewOf(in), URL: h.ExternalURL + "/ui/invitations/" + id + "#" + secret}, in.ResourceVersion
		},
		Code: http.StatusCreated,
	}.Serve(w, r, &h.Deps)
}

// specOf reads a request for an Invitation, without its secret.
func (h *Handler) specOf(r *http.Request, by httpmw.Author) (*v1alpha1.InvitationSpec, error) {
	scope := httpmw.ScopeOf(r)
	var in rest.CreateInvitationRequest
	if err := httpapi.Read(r, &in); err != nil {
		return nil, err
	}
	s := &v1alpha1.InvitationSpec{Role: v1alpha1.Role(in.Role), Scope: v1alpha1.ScopeOrg, Note: in.Note}
	if scope.Workspace != nil {
		s.Scope, s.WorkspaceRef = v1alpha1.ScopeWorkspace, &v1alpha1.NamedRef{Name: scope.Workspace.UUID}
	}
	s.InvitedBy = v1alpha1.Inviter{Name: scope.User, MembershipUID: by.EntitledBy()}
	if err := tenancy.CheckRole("role", s.Role); err != nil {
		return nil, err
	}
	if err := tenancy.CheckNote("note", in.Note); err != nil {
		return nil, err
	}
	var err error
	if s.Email, err = tenancy.CheckEmail("email", in.Email); err != nil {
		return nil, err
	}
	expires, err := tenancy.CheckInvitationExpiry("expiresAt", in.ExpiresAt, h.Now())
	if err != nil {
		return nil, err
	}
	s.ExpiresAt = metav1.NewTime(expires)
	s.MembershipExpiresAt, err = tenancy.CheckInvitedExpiry("membershipExpiresAt", in.MembershipExpiresAt, h.Now())
	return s, err
}

// byGroup refuses an invitation by a person whom a group of the identity provider alone entitles: nobody could accept it.
func (h *Handler) byGroup(scope *tenancy.Scope, spec v1alpha1.InvitationSpec) error {
	inviter, _ := h.Views.ByName(scope.User)
	inOrg, _ := h.Views.Membership(scope.Org.ClusterID, tenancy.MembershipName(scope.User, ""))
	inWorkspace, _ := h.Views.Membership(scope.Org.ClusterID, tenancy.MembershipName(scope.User, scope.WorkspaceUUID()))
	if scope.Workspace == nil {
		inWorkspace = nil
	}
	i := &v1alpha1.Invitation{Spec: spec}
	if _, ok := tenancy.StillInvites(i, inviter, scope.Org, scope.Workspace, inOrg, inWorkspace, h.Now()); ok {
		return nil
	}
	return tenancy.RoleTooLow("what a group of the identity provider gives you lets you invite nobody; have an admin give you the role by hand")
}

// factsOf are the role and the end that an Invitation gives.
func factsOf(s v1alpha1.InvitationSpec) audit.Facts {
	facts := audit.Facts{Role: string(s.Role)}
	if s.MembershipExpiresAt != nil {
		facts.ExpiresAt = tenancy.ExpiryText(s.MembershipExpiresAt)
	}
	return facts
}

func (h *Handler) revoke(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := tenancy.MayInvite(*scope); err != nil {
		return err
	}
	i := h.find(r.Context(), chi.URLParam(r, "invitation"))
	if i == nil || tenancy.InvitedWorkspace(i.Spec) != scope.WorkspaceUUID() {
		return tenancy.NoSuchInvitation()
	}
	if org, _ := h.Invitations.OrgOfInvitation(i); org.ClusterID != scope.Org.ClusterID {
		return tenancy.NoSuchInvitation()
	}
	if err := tenancy.MayInviteAs(i.Spec.Role)(*scope); err != nil {
		return err
	}
	in := invited{Invitation: i, org: scope.Org, workspace: scope.Workspace}
	return h.answered(in, httpmw.Intent{Reduces: true}, v1alpha1.InvitationRevoked, scope.User).Serve(w, r, &h.Deps)
}

// answered is the change that declines or revokes an Invitation.
func (h *Handler) answered(in invited, intent httpmw.Intent, state v1alpha1.InvitationState, by string) api.Change[*v1alpha1.Organization] {
	return api.Change[*v1alpha1.Organization]{
		Intent: intent,
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.Organization, error) {
			if match != nil {
				if err := match(in.ResourceVersion); err != nil {
					return nil, err
				}
			}
			return h.answer(ctx, in, state, by)
		},
		Refs: func(*v1alpha1.Organization) []tenancy.Ref { return []tenancy.Ref{tenancy.OrgRef(in.org.UUID())} },
		Seen: func(o **v1alpha1.Organization) bool { return h.carriedOut(in, (*o).Generation) },
		Done: func(*v1alpha1.Organization) { h.Count(string(state)) },
	}
}

// carriedOut reports whether the caches show the Organization at a generation without a change of the
// Invitation.
func (h *Handler) carriedOut(in invited, generation int64) bool {
	org, ok := h.Places.Org(in.org.UUID())
	if !ok {
		return true
	}
	_, pending := tenancy.InvitationChangeOf(org.Organization, in.Name)
	return org.Generation >= generation && !pending
}
