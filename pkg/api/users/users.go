package users

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Handler serves /api/users.
type Handler struct {
	api.Deps
	// Search returns at most limit people by a part of their name or email.
	Search func(query string, limit int) []*v1alpha1.User
	// WriteEnds writes the end of the Sessions of a User that a soft-delete has ended. It comes
	// before the undelete, so that they stay ended.
	WriteEnds func(ctx context.Context, user string) error
	// Bound reports whether the bindings of a User in kcp are as desired.
	Bound func(user string) bool
	// LimitSearch is the rate limit of the search, a middleware of httpmw.
	LimitSearch func(http.Handler) http.Handler
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.LimitSearch).Get("/users", httpapi.Handle(h.search))
	r.Get("/users/me", httpapi.Handle(h.me))
	r.Patch("/users/me", httpapi.Handle(h.patchMe))
	r.Get("/users/me/memberships", httpapi.Handle(h.memberships))
	r.Delete("/users/{name}", httpapi.Handle(h.remove))
	r.Post("/users/{name}/undelete", httpapi.Handle(h.undelete))
}

func (h *Handler) viewOf(u *v1alpha1.User, caller *httpmw.Caller) rest.User {
	given := h.givenTo(u)
	v := rest.User{
		Name: u.Name, DisplayName: u.Spec.DisplayName, Email: u.Spec.Email, Issuer: u.Spec.Issuer, Subject: u.Spec.Subject,
		Phase: string(given.phase), PersonalOrg: given.org, DefaultWorkspace: given.workspace,
		OrgQuota:            rest.Quota{Limit: tenancy.Limit(u.Spec.OrgQuota, h.DefaultOrgQuota), Used: tenancy.Used(u.Spec.OrgClaims, h.Views.OrgsCreatedBy(u.Name))},
		PlatformAdmin:       caller.PlatformAdmin,
		Auditor:             caller.Auditor,
		Registration:        string(tenancy.RegistrationOf(u)),
		RejectionReason:     u.Spec.RejectionReason,
		DeletionRequestedAt: u.Status.DeletionRequestedAt,
		PurgeAt:             tenancy.PurgeAt(u.Status.DeletionRequestedAt, h.Deletion),
	}
	if at := caller.Identity.ExpiresAt; !at.IsZero() {
		v.ExpiresAt = &metav1.Time{Time: at}
	}
	return v
}

func (h *Handler) me(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r)
	if caller.Bot != nil {
		return bot(w, caller)
	}
	httpapi.Tag(w, caller.User.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(caller.User, caller))
}

func (h *Handler) patchMe(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r)
	name, err := mergepatch.Rename(r)
	if err != nil {
		return err
	}
	if name == nil && api.Unchanged(r) {
		return h.me(w, r)
	}
	return api.Change[*v1alpha1.User]{
		Intent: httpmw.Intent{Object: caller.User.Name, Facts: audit.Facts{Fields: []string{"displayName"}}},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.User, error) {
			return h.Store.ChangeUser(ctx, caller.User, match, func(_ context.Context, u *v1alpha1.User) error {
				u.Spec.DisplayName = ptr.Deref(name, u.Spec.DisplayName)
				return nil
			})
		},
		Refs: func(u *v1alpha1.User) []tenancy.Ref { return []tenancy.Ref{tenancy.UserRef(u.Name)} },
		Seen: func(u **v1alpha1.User) bool {
			seen, ok := h.Views.ByName((*u).Name)
			return ok && seen.Generation >= (*u).Generation
		},
		View: func(u *v1alpha1.User) (any, string) { return h.viewOf(u, caller), u.ResourceVersion },
	}.Serve(w, r, &h.Deps)
}

func (h *Handler) memberships(w http.ResponseWriter, r *http.Request) error {
	items, err := h.Rows(r, httpmw.CallerOf(r).User.Name)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, rest.List[rest.MembershipRow]{Items: items})
}
