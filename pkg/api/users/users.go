package users

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Views are the caches that the handler reads.
type Views interface {
	ByName(name string) (*v1alpha1.User, bool)
	Index(user string) []v1alpha1.MembershipIndexEntry
	OrgsCreatedBy(user string) []string
	SearchPeople(query string, limit int) []*v1alpha1.User
	Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
}

// Tenants are the caches of the objects that sign-up creates for a person.
type Tenants interface {
	Org(uuid string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	Membership(orgCluster, name string) (*v1alpha1.Membership, bool)
}

// Handler serves /api/users.
type Handler struct {
	Views   Views
	Tenants Tenants
	Store   waiting.Store
	// DefaultOrgQuota is the quota of Organizations of a User without spec.orgQuota (O-5).
	DefaultOrgQuota int
	DeletionGrace   time.Duration
	// WriteEnds writes the end of the Sessions of a User that a soft-delete has ended. It comes
	// before the undelete, so that they stay ended.
	WriteEnds func(ctx context.Context, user string) error
	Clock     clock.PassiveClock
	// FollowTimeout limits the time that a write waits for the caches.
	FollowTimeout time.Duration
	// Followed reports whether the bindings of a User in kcp are as desired.
	Followed func(user string) bool
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
		Name: u.Name, DisplayName: u.Spec.DisplayName, Email: u.Spec.Email,
		Phase: string(given.phase), PersonalOrg: given.org, DefaultWorkspace: given.workspace,
		OrgQuota:            rest.Quota{Limit: tenancy.Limit(u.Spec.OrgQuota, h.DefaultOrgQuota), Used: tenancy.Used(u.Spec.OrgClaims, h.Views.OrgsCreatedBy(u.Name))},
		PlatformAdmin:       caller.PlatformAdmin,
		Registration:        string(tenancy.RegistrationOf(u)),
		DeletionRequestedAt: u.Status.DeletionRequestedAt,
		PurgeAt:             tenancy.PurgeAt(u.Status.DeletionRequestedAt, h.DeletionGrace),
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
	name, match, err := mergepatch.Rename(r)
	if err != nil {
		return err
	}
	if name == nil && match == nil {
		return h.me(w, r)
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Object: caller.User.Name, Facts: audit.Facts{Fields: []string{"displayName"}}})
	if err != nil {
		return err
	}
	defer cancel()
	u, err := h.Store.ChangeUser(ctx, caller.User, match, func(_ context.Context, u *v1alpha1.User) error {
		u.Spec.DisplayName = ptr.Deref(name, u.Spec.DisplayName)
		return nil
	})
	if err != nil {
		return err
	}
	waiting.Until(r, h.FollowTimeout, h.Views.Await, []tenancy.Ref{tenancy.UserRef(u.Name)}, func() bool {
		seen, ok := h.Views.ByName(u.Name)
		return ok && seen.Generation >= u.Generation
	})
	httpapi.Tag(w, u.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(u, caller))
}

func (h *Handler) memberships(w http.ResponseWriter, r *http.Request) error {
	deleted, err := httpapi.Flag(r, "deleted")
	if err != nil {
		return err
	}
	if err := paging.SinglePage(r); err != nil {
		return err
	}
	entries := h.Views.Index(httpmw.CallerOf(r).User.Name)
	items := make([]rest.MembershipRow, 0, len(entries))
	for _, e := range entries {
		if deleted || e.SoftDeletedAt == nil {
			items = append(items, wire.Row(e, h.DeletionGrace))
		}
	}
	return httpapi.Write(w, http.StatusOK, rest.List[rest.MembershipRow]{Items: items})
}
