package orgs

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/recent"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Handler serves /api/orgs and /api/orgs/{org}.
type Handler struct {
	api.Deps
	// BoundForAll reports whether kcp has the desired bindings of all members of the Org.
	BoundForAll func(org string) bool
	// Stored returns what the Organization stores, if that is known; nil for never.
	Stored func(o tenancy.Org) (rest.Amount, bool)
	// items are those of lists, encoded.
	items *recent.Cache[look, []byte]
}

// maxItems is the number of encoded items of lists that are kept, of 1 to 3 KiB each.
const maxItems = 4096

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	h.items = recent.New[look, []byte](maxItems)
	r.Get("/orgs", httpapi.Handle(h.list))
	r.Post("/orgs", httpapi.Handle(h.create))
	r.With(h.Scopes.CreatedOrg).Get("/orgs/{org}", httpapi.Handle(h.get))
	r.With(h.Scopes.Org).Patch("/orgs/{org}", httpapi.Handle(h.patch))
	r.With(h.Scopes.Org).Delete("/orgs/{org}", httpapi.Handle(h.remove))
	r.With(h.Scopes.DeletedOrg).Post("/orgs/{org}/undelete", httpapi.Handle(h.undelete))
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r).User
	entries := h.Views.Index(caller.Name)
	items := make([]paging.Encoded, 0, len(entries))
	add := func(o tenancy.Org, raw []byte) {
		items = append(items, paging.Encoded{DisplayName: o.Spec.DisplayName, UUID: o.UUID(), JSON: raw})
	}
	for _, e := range entries {
		if e.WorkspaceUUID != "" || e.SoftDeletedAt != nil {
			continue
		}
		if o, ok := h.Views.Org(e.OrgUUID); ok && !o.Deleted() {
			raw, err := h.encoded(o, e.Role, e.OrgFirstAdmin)
			if err != nil {
				return err
			}
			add(o, raw)
		}
	}
	for _, uuid := range h.accepted(caller) {
		if tenancy.OrgRole(entries, uuid) != "" {
			continue
		}
		if o, role := h.Scopes.Creator.ReadOrg(caller, uuid); role != "" && !o.Deleted() {
			raw, err := httpapi.Encode(h.viewOf(o, role, caller.Name))
			if err != nil {
				return err
			}
			add(o, raw)
		}
	}
	return paging.WriteEncoded(w, r, items)
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
	name := caller.User.Name
	var in rest.CreateRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	claim, billing, err := idempotency.Claim(r, in, h.NewUUID, h.Clock.Now())
	if err != nil {
		return err
	}
	claims := func(u *v1alpha1.User, c v1alpha1.Claim) ([]v1alpha1.Claim, error) {
		claims, err := tenancy.ClaimOrg(u, h.Views.OrgsCreatedBy(name), h.DefaultOrgQuota, c)
		if err != nil || claims == nil {
			return nil, err
		}
		return claims, h.bill(c, billing)
	}
	taking := h.Taking(caller.User, claim, caller.User.Spec.OrgClaims, func() []tenancy.KeyedObject { return h.keyed(name) })
	// What the cache shows to be refused takes no spare and does not wait for other writers.
	if err := taking.Check(caller.User.Spec.OrgClaims, func(c v1alpha1.Claim) error {
		_, err := claims(caller.User, c)
		return err
	}); err != nil {
		return err
	}
	taking.Reserve(caller.User.Spec.OrgClaims, func(s api.Spares) tenancy.ReservedSpare { return s.ForOrg(r.Context(), name) })
	defer func() { taking.End(r.Context()) }()
	intent := httpmw.Intent{Org: taking.Claim.UUID, Claims: true}
	if billing != nil {
		intent.Facts.Fields = []string{"billing"}
	}
	ctx, cancel, err := api.Write(r, intent)
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := h.Store.ChangeUser(ctx, caller.User, nil, func(_ context.Context, u *v1alpha1.User) error {
		return taking.In(r, u.Spec.OrgClaims, []tenancy.Ref{tenancy.UserRef(name)}, func(c v1alpha1.Claim) error {
			claimed, err := claims(u, c)
			if err == nil && claimed != nil {
				u.Spec.OrgClaims = claimed
			}
			return err
		})
	}); err != nil {
		return err
	}
	httpmw.Claimed(r, taking.Claim.UUID, "")
	planned := tenancy.ClaimedOrg(taking.Claim)
	planned.CreationTimestamp = claim.Request.RequestedAt
	return h.created(w, r, planned)
}

// bill sets the billing that a claim requests.
func (h *Handler) bill(c v1alpha1.Claim, edit tenancy.BillingEdit) error {
	initial := h.Billing.Initial()
	billing := initial
	if edit != nil {
		billing = edit(initial)
	}
	c.Request.Billing = nil
	if billing != nil {
		c.Request.Billing = &v1alpha1.RevisedBilling{Billing: *billing}
	}
	return h.Billing.CheckNew(false, initial, billing)
}

// keyed returns the Orgs that a person created.
func (h *Handler) keyed(user string) (made []tenancy.KeyedObject) {
	for _, uuid := range h.Views.OrgsCreatedBy(user) {
		if o, ok := h.Views.Org(uuid); ok {
			made = append(made, tenancy.KeyedObject{UUID: uuid, Hash: o.Labels[v1alpha1.IdempotencyKeyLabel], CreatedBy: user, CreatedAt: o.CreationTimestamp})
		}
	}
	return made
}

// created answers 201 if the Org becomes Ready and is in its creator's index in time,
// and 202 otherwise. Its creator can read it either way.
func (h *Handler) created(w http.ResponseWriter, r *http.Request, planned *v1alpha1.Organization) error {
	user := httpmw.CallerOf(r).User.Name
	org := tenancy.Org{Organization: planned}
	code := h.Made(r, refs(planned.Name, user), func() bool {
		seen, ok := h.Views.Org(planned.Name)
		if !ok {
			return false
		}
		org = seen
		return seen.Status.Phase == v1alpha1.PhaseReady && tenancy.OrgRole(h.Views.Index(user), planned.Name) != ""
	}, func() bool {
		u, ok := h.Views.ByName(user)
		if !ok {
			return true
		}
		_, role := h.Scopes.Creator.ReadOrg(u, planned.Name)
		return role != "" || tenancy.OrgRole(h.Views.Index(user), planned.Name) != ""
	})
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
	by, in, err := api.Begin[rest.UpdateOrgRequest](r, h.Rights, func(s tenancy.Scope) error { return s.RequireOrgAdmin("change it") })
	if err != nil {
		return err
	}
	edits, intent, err := editsOf(in)
	if err != nil {
		return err
	}
	apply, err := httpapi.Flag(r, "applyToWorkspaces")
	if err != nil {
		return err
	}
	if apply {
		intent.Facts.Fields, intent.Reduces = append(intent.Facts.Fields, "workspaceBilling"), false
	}
	if len(edits) == 0 && !apply && api.Unchanged(r) {
		return h.get(w, r)
	}
	return api.Change[tenancy.Org]{
		Intent: intent,
		Write: func(ctx context.Context, match api.Match) (tenancy.Org, error) {
			changed, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, match, func(ctx context.Context, o *v1alpha1.Organization) error {
				if err := by.Judge(ctx, o); err != nil {
					return err
				}
				before := o.Spec.Billing
				for _, edit := range edits {
					edit(&o.Spec)
				}
				if !apply {
					return h.Billing.Check(o.Spec.Personal, before, o.Spec.Billing)
				}
				tenancy.ApplyBilling(o)
				return h.Billing.CheckNew(o.Spec.Personal, nil, o.Spec.Billing)
			})
			return tenancy.Org{Organization: changed, ClusterID: scope.Org.ClusterID}, err
		},
		Refs: func(tenancy.Org) []tenancy.Ref { return refs(scope.Org.UUID(), scope.User) },
		Seen: func(changed *tenancy.Org) bool {
			seen, ok := h.Views.Org(changed.UUID())
			return ok && seen.Generation >= changed.Generation && h.indexed(scope.User, seen) && (in.DefaultAccess == nil || h.BoundForAll(seen.UUID()))
		},
		View: h.answer(scope),
	}.Serve(w, r, &h.Deps)
}

// answer returns the view of the Org of a scope after a change.
func (h *Handler) answer(scope *tenancy.Scope) func(tenancy.Org) (any, string) {
	return func(org tenancy.Org) (any, string) {
		return h.viewOf(org, scope.OrgRole, h.firstAdmin(scope.User, org)), org.ResourceVersion
	}
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
