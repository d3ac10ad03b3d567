package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"k8s.io/utils/ptr"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxQuota is the maximum of quotas in the schemas.
const maxQuota = 5000

// Memberships is the part of store.Store that lists the Memberships of an Organization.
type Memberships interface {
	ListMemberships(ctx context.Context, orgCluster string) ([]v1alpha1.Membership, error)
}

// Handler serves /api/admin.
type Handler struct {
	api.Deps
	// People returns all Users, and Orgs all Organizations, soft-deleted ones included.
	People func() []*v1alpha1.User
	Orgs   func() []tenancy.Org
	// Storage are the limits of what an Organization without its own stores.
	Storage v1alpha1.StorageLimits
	// Memberships reads from kcp.
	Memberships Memberships
	// Bound reports whether the bindings of a User in kcp are as desired.
	Bound func(user string) bool
	// WriteEnds writes the end of the Sessions of a User that a rejection has ended. It comes
	// before the approval, so that they stay ended.
	WriteEnds func(ctx context.Context, user string) error
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(httpmw.RequireAuditor)
		r.Get("/admin/users", httpapi.Handle(h.users))
		r.Get("/admin/users/{name}", httpapi.Handle(h.user))
		r.Get("/admin/users/{name}/memberships", httpapi.Handle(h.memberships))
		r.Get("/admin/orgs", httpapi.Handle(h.orgs))
		r.Get("/admin/orgs/{org}", httpapi.Handle(h.oneOrg))
	})
	r.Group(func(r chi.Router) {
		r.Use(httpmw.RequirePlatformAdmin)
		r.Patch("/admin/users/{name}", httpapi.Handle(h.patchUser))
		r.Patch("/admin/orgs/{org}", httpapi.Handle(h.patchOrg))
		r.Delete("/admin/orgs/{org}", httpapi.Handle(h.deleteOrg))
		r.Post("/admin/orgs/{org}/undelete", httpapi.Handle(h.undeleteOrg))
		r.Post("/admin/orgs/{org}/admins", httpapi.Handle(h.addAdmin))
		r.Get("/admin/deletions", httpapi.Handle(h.deletions))
	})
}

func (h *Handler) userView(u *v1alpha1.User) rest.AdminUser {
	return rest.AdminUser{
		Name: u.Name, DisplayName: u.Spec.DisplayName, Email: u.Spec.Email, Registration: string(tenancy.RegistrationOf(u)),
		RejectionReason: u.Spec.RejectionReason,
		PersonalOrg:     u.Status.PersonalOrg,
		OrgQuota: rest.Quota{
			Limit: tenancy.Limit(u.Spec.OrgQuota, h.DefaultOrgQuota),
			Used:  tenancy.Used(u.Spec.OrgClaims, h.Views.OrgsCreatedBy(u.Name)),
		},
		CreatedAt: u.CreationTimestamp, Phase: string(tenancy.PhaseOf(u.Status.CommonStatus)), DeletionRequestedAt: u.Status.DeletionRequestedAt,
	}
}

func (h *Handler) users(w http.ResponseWriter, r *http.Request) error {
	registration := v1alpha1.Registration(r.URL.Query().Get("registration"))
	if registration != "" && !known(registration) {
		return errs.InvalidField("query:registration", "must be Approved, Pending or Rejected")
	}
	var items []rest.AdminUser
	for _, u := range h.People() {
		if v := h.userView(u); registration == "" || v.Registration == string(registration) {
			items = append(items, v)
		}
	}
	return paging.Write(w, r, items, func(v rest.AdminUser) (string, string) { return v.DisplayName, v.Name })
}

func (h *Handler) user(w http.ResponseWriter, r *http.Request) error {
	u, err := h.Person(chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	httpapi.Tag(w, u.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.userView(u))
}

// memberships answers with the index of a User.
func (h *Handler) memberships(w http.ResponseWriter, r *http.Request) error {
	u, err := h.Person(chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	items, err := h.Rows(r, u.Name)
	if err != nil {
		return err
	}
	return paging.Write(w, r, items, func(m rest.MembershipRow) (string, string) {
		return m.OrgDisplayName, m.OrgUUID + "/" + m.WorkspaceUUID
	})
}

func known(r v1alpha1.Registration) bool {
	return r == v1alpha1.RegistrationApproved || r == v1alpha1.RegistrationPending || r == v1alpha1.RegistrationRejected
}

func (h *Handler) patchUser(w http.ResponseWriter, r *http.Request) error {
	var in rest.AdminUpdateUserRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	limit, err := number("orgQuota", in.OrgQuota)
	if err != nil {
		return err
	}
	text, given, err := mergepatch.Text("registration", in.Registration)
	if err != nil {
		return err
	}
	if given {
		if !known(v1alpha1.Registration(text)) {
			return errs.InvalidField("registration", "must be Approved, Pending or Rejected")
		}
	}
	reason, err := reasonIn(in.RejectionReason, v1alpha1.Registration(text))
	if err != nil {
		return err
	}
	held, err := h.Person(chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	return api.Change[*v1alpha1.User]{
		Intent: httpmw.Intent{
			Reduces: v1alpha1.Registration(text) == v1alpha1.RegistrationRejected && in.OrgQuota == nil,
			Facts:   audit.Facts{Registration: text, Reason: reason, Quota: quotaIn(in.OrgQuota)},
		},
		Ends: []string{held.Name},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.User, error) {
			return h.Store.ChangeUser(ctx, held, match, func(ctx context.Context, u *v1alpha1.User) error {
				u.Spec.OrgQuota = ptr.Deref(limit, u.Spec.OrgQuota)
				if !given {
					return nil
				}
				u.Spec.RejectionReason = reason
				return h.register(ctx, held, u, v1alpha1.Registration(text), match != nil)
			})
		},
		Refs: func(u *v1alpha1.User) []tenancy.Ref { return tenancy.RefsOfRights(u.Name, h.Views.Index(u.Name)) },
		Seen: func(u **v1alpha1.User) bool {
			seen, ok := h.Views.ByName(held.Name)
			return ok && seen.Generation >= (*u).Generation && (!given || h.Bound(held.Name))
		},
		Ended: func(u *v1alpha1.User, receipt *rest.Receipt) (any, string) {
			v := h.userView(u)
			v.Receipt = receipt
			return v, u.ResourceVersion
		},
	}.Serve(w, r, &h.Deps)
}

// maxReason is the maximum length of a reason, in characters.
const maxReason = 512

// reasonIn reads the reason of a rejection. It is empty without one.
func reasonIn(raw rest.Field[string], registration v1alpha1.Registration) (string, error) {
	const field = "rejectionReason"
	text, given, err := mergepatch.Text(field, raw)
	switch {
	case err != nil || !given:
		return "", err
	case registration != v1alpha1.RegistrationRejected:
		return "", errs.InvalidField(field, "must be given together with registration Rejected only")
	case utf8.RuneCountInString(text) > maxReason:
		return "", errs.InvalidField(field, fmt.Sprintf("must have at most %d characters", maxReason))
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", errs.InvalidField(field, "must not contain control characters")
	}
	return strings.TrimSpace(text), nil
}

// register sets the registration of a User. An approval without If-Match does not overwrite a
// rejection that is newer than the cache, which has seen, because the caller cannot know of it. A
// rejection overwrites everything.
func (h *Handler) register(ctx context.Context, seen, u *v1alpha1.User, wanted v1alpha1.Registration, versioned bool) error {
	now, stored := tenancy.RegistrationOf(u), u.Spec.Registration
	u.Spec.Registration = wanted
	switch {
	case wanted == stored || wanted == v1alpha1.RegistrationRejected:
		return nil
	case !versioned && now != wanted && now != tenancy.RegistrationOf(seen):
		return errs.New(errs.Conflict, fmt.Sprintf("the registration of this person became %s at the same time; read it again and repeat the request", now))
	}
	// Sessions that a rejection has ended must not go on. The write is for this version of
	// the User: a rejection after this line is a conflict.
	return h.WriteEnds(ctx, u.Name)
}

// quotaIn is a quota in the audit log: empty if it is not given.
func quotaIn(raw rest.Field[int32]) string {
	if mergepatch.IsNull(raw) {
		return "default"
	}
	return string(raw)
}

// number reads a quota, or returns nil if it is not given. null restores the default.
func number(field string, raw rest.Field[int32]) (*int32, error) {
	var n int32
	switch {
	case raw == nil:
		return nil, nil
	case mergepatch.IsNull(raw):
		return &n, nil
	}
	n, err := raw.Value()
	if err != nil || n < 0 || n > maxQuota {
		return nil, errs.InvalidField(field, fmt.Sprintf("must be a number from 0, which means the default, to %d", maxQuota))
	}
	return &n, nil
}
