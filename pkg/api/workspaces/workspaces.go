package workspaces

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

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

// Handler serves /api/orgs/{org}/workspaces.
type Handler struct {
	api.Deps
	// Stored adds to a view what the Workspace stores, if that is known; nil adds nothing.
	Stored func(ws tenancy.Workspace, to *rest.Workspace)
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.Scopes.OrgVisitor).Get("/orgs/{org}/workspaces", httpapi.Handle(h.list))
	r.With(h.Scopes.Org).Post("/orgs/{org}/workspaces", httpapi.Handle(h.create))
	r.With(h.Scopes.CreatedWorkspace).Get("/orgs/{org}/workspaces/{ws}", httpapi.Handle(h.get))
	r.With(h.Scopes.Definition).Patch("/orgs/{org}/workspaces/{ws}", httpapi.Handle(h.patch))
	r.With(h.Scopes.Workspace).Delete("/orgs/{org}/workspaces/{ws}", httpapi.Handle(h.remove))
	r.With(h.Scopes.DeletedWorkspace).Post("/orgs/{org}/workspaces/{ws}/undelete", httpapi.Handle(h.undelete))
}

func (h *Handler) viewOf(org tenancy.Org, ws tenancy.Workspace, role v1alpha1.Role) rest.Workspace {
	billing := tenancy.BillingOf(org.Organization, ws)
	v := rest.Workspace{
		UUID: ws.UUID, OrgUUID: ws.OrgUUID, DisplayName: ws.DisplayName, Description: ws.Description, Role: rest.Role(role),
		WorkspacePath: h.Tree.Workspace(ws.OrgUUID, ws.UUID), ClusterID: ws.ClusterID,
		CreatedAt: ws.CreatedAt, CreatedBy: ws.CreatedBy, Billing: wire.Billing(&billing.Billing),
		Phase: string(ws.Status.Phase), Conditions: wire.Conditions(ws.Status.Conditions),
		DeletionRequestedAt: ws.DeletionRequestedAt,
		PurgeAt:             h.PurgeAt(ws),
		ExpiresAt:           ws.ExpiresAt,
		Requests:            ws.Requests,
	}
	if ws.ClusterID != "" {
		v.URL = h.ExternalURL + "/clusters/" + ws.ClusterID
	}
	if ws.Status.Phase == v1alpha1.PhaseReady && !ws.Ready() {
		// What kcp has taken back is not all there, whatever was written of it (O-11).
		v.Phase = string(v1alpha1.PhaseProgressing)
	}
	if h.Stored != nil {
		h.Stored(ws, &v)
	}
	return v
}

// managed is the view of somebody who may be a manager.
func (h *Handler) managed(org tenancy.Org, ws tenancy.Workspace, role v1alpha1.Role, manager bool) rest.Workspace {
	v := h.viewOf(org, ws, role)
	v.Manager = manager
	return v
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	deleted, err := httpapi.Flag(r, "deleted")
	if err != nil {
		return err
	}
	items := h.live
	if deleted {
		items = h.deleted
	}
	return paging.Write(w, r, items(r), func(v rest.Workspace) (string, string) { return v.DisplayName, v.UUID })
}

// live are the Workspaces that the caller can enter, manages, or made a moment ago.
func (h *Handler) live(r *http.Request) (items []rest.Workspace) {
	scope := httpmw.ScopeOf(r)
	entries := h.Views.Index(scope.User)
	made := map[string]bool{}
	for _, ws := range h.Views.Workspaces(scope.Org.UUID()) {
		made[ws.UUID] = true
		if ws.Deleted() {
			continue
		}
		role := tenancy.WorkspaceRole(entries, scope.Org.UUID(), ws.UUID, scope.Org.Spec.DefaultAccess)
		if role == "" {
			role = v1alpha1.Role(h.asCreator(r, ws.UUID).Role)
		}
		manager := tenancy.IsManager(entries, scope.Org.UUID(), ws.UUID)
		if role != "" || manager {
			items = append(items, h.managed(scope.Org, ws, role, manager))
		}
	}
	for _, c := range scope.Org.Spec.WorkspaceClaims {
		if made[c.UUID] {
			continue
		}
		if v := h.asCreator(r, c.UUID); v.Role != "" {
			items = append(items, v)
		}
	}
	return items
}

// asCreator returns a Workspace that the caller created. Its role is empty if they did
// not, or may not read it.
func (h *Handler) asCreator(r *http.Request, uuid string) rest.Workspace {
	scope := httpmw.ScopeOf(r)
	if scope.OrgRole == "" {
		return rest.Workspace{}
	}
	ws, role := h.Scopes.Creator.ReadWorkspace(httpmw.CallerOf(r).User, scope.Org, uuid)
	return h.viewOf(scope.Org, ws, role)
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, in, err := api.Begin[rest.CreateWorkspaceRequest](r, h.Rights, tenancy.Scope.RequireWorkspaceCreation)
	if err != nil {
		return err
	}
	end, err := h.Expiry(in.ExpiresAt)
	if err != nil {
		return err
	}
	asked := rest.CreateRequest{DisplayName: in.DisplayName, Description: in.Description, Billing: in.Billing}
	claim, billing, err := idempotency.Claim(r, asked, h.NewUUID, h.Clock.Now())
	if err != nil {
		return err
	}
	if end != nil {
		claim.Request.ExpiresAt = end.At
	}
	if scope.Org.ClusterID == "" {
		return errs.New(errs.Unavailable, "the organization is still being made; try again").After(time.Second)
	}
	user, org := httpmw.CallerOf(r).User, scope.Org
	taking := h.Taking(user, claim, org.Spec.WorkspaceClaims, func() []tenancy.KeyedObject { return h.keyed(org.UUID()) })
	// What the cache shows to be refused takes no spare and does not wait for the other writers of the
	// Organization.
	if err := taking.Check(org.Spec.WorkspaceClaims, func(c v1alpha1.Claim) error {
		_, err := h.claims(org.Organization, c, billing)
		return err
	}); err != nil {
		return err
	}
	taking.Reserve(org.Spec.WorkspaceClaims, func(s api.Spares) tenancy.ReservedSpare {
		return s.ForWorkspace(r.Context(), org, user.Name)
	})
	defer func() { taking.End(r.Context()) }()
	intent := httpmw.Intent{Workspace: taking.Claim.UUID}
	if claim.Request.ExpiresAt != nil {
		intent.Facts.ExpiresAt = tenancy.ExpiryText(claim.Request.ExpiresAt)
	}
	if billing != nil {
		intent.Facts.Fields = []string{"billing"}
	}
	ctx, cancel, err := api.Write(r, intent)
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := h.Store.ChangeOrganization(ctx, org.Organization, nil, func(ctx context.Context, o *v1alpha1.Organization) error {
		standing, err := by.JudgeStanding(ctx, o)
		if err != nil {
			taking.Refused(o.Spec.WorkspaceClaims)
			return err
		}
		return taking.In(r, o.Spec.WorkspaceClaims, []tenancy.Ref{tenancy.OrgRef(org.UUID())}, func(c v1alpha1.Claim) error {
			claims, err := h.claims(o, c, billing)
			if err != nil || claims == nil {
				return err
			}
			o.Spec.WorkspaceClaims = claims
			o.Spec.MembershipChanges, err = tenancy.WithCreator(o, c, standing.Own(), standing.ByGroup)
			return err
		})
	}); err != nil {
		return err
	}
	httpmw.Claimed(r, org.UUID(), taking.Claim.UUID)
	return h.created(w, r, tenancy.ClaimedWorkspace(org.UUID(), taking.Claim))
}

// keyed returns the Workspaces in the Org.
func (h *Handler) keyed(org string) (made []tenancy.KeyedObject) {
	for _, ws := range h.Views.Workspaces(org) {
		made = append(made, tenancy.KeyedObject{UUID: ws.UUID, Hash: ws.Labels[v1alpha1.IdempotencyKeyLabel], CreatedBy: ws.CreatedBy, CreatedAt: ws.CreatedAt})
	}
	return made
}

// existing are the UUIDs of the Workspaces in the Org.
func (h *Handler) existing(org string) []string {
	var uuids []string
	for _, ws := range h.Views.Workspaces(org) {
		uuids = append(uuids, ws.UUID)
	}
	return uuids
}

// created answers 201 if kubectl works in the Workspace and it is in its creator's index
// in time, and 202 otherwise. Its creator can read it either way.
func (h *Handler) created(w http.ResponseWriter, r *http.Request, made tenancy.Workspace) error {
	scope := httpmw.ScopeOf(r)
	left := false
	code := h.Made(r, append(refs(made, scope.User), tenancy.OrgRef(made.OrgUUID)), func() bool {
		if left = tenancy.OrgRole(h.Views.Index(scope.User), made.OrgUUID) == ""; left {
			return true
		}
		seen, ok := h.Views.Workspace(made.OrgUUID, made.UUID)
		if !ok {
			return false
		}
		made = seen
		return seen.Ready() && indexed(h.Views.Index(scope.User), seen)
	}, func() bool {
		org, ok := h.Views.Org(made.OrgUUID)
		if !ok {
			return true
		}
		_, role := h.Scopes.Creator.ReadWorkspace(httpmw.CallerOf(r).User, org, made.UUID)
		return role != "" || tenancy.Row(h.Views.Index(scope.User), made.OrgUUID, made.UUID) != nil
	})
	if left {
		return errs.New(errs.Forbidden, "you were removed from the organization meanwhile; the workspace stays in it, without you")
	}
	w.Header().Set("Location", "/api/orgs/"+made.OrgUUID+"/workspaces/"+made.UUID)
	httpapi.Tag(w, version(scope.Org, made))
	return httpapi.Write(w, code, h.viewOf(scope.Org, made, v1alpha1.RoleAdmin))
}

// indexed reports whether the rows of the index have the current name of the Workspace.
func indexed(entries []v1alpha1.MembershipIndexEntry, ws tenancy.Workspace) bool {
	row := tenancy.Row(entries, ws.OrgUUID, ws.UUID)
	return row != nil && row.WorkspaceDisplayName == tenancy.IndexedName(ws.DisplayName, len(entries)) && row.ClusterID == ws.ClusterID
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	httpapi.Tag(w, version(scope.Org, *scope.Workspace))
	return httpapi.Write(w, http.StatusOK, h.managed(scope.Org, *scope.Workspace, scope.WorkspaceRole, scope.WorkspaceManager))
}

// answer returns the view of the Workspace of a scope after a change.
func (h *Handler) answer(scope *tenancy.Scope) func(tenancy.Workspace) (any, string) {
	return func(ws tenancy.Workspace) (any, string) {
		return h.managed(scope.Org, ws, scope.WorkspaceRole, scope.WorkspaceManager), version(scope.Org, ws)
	}
}

// refs are the objects that a caller waits for after a write to the Workspace: the Workspace, and
// the caller's own row of it.
func refs(ws tenancy.Workspace, caller string) []tenancy.Ref {
	return []tenancy.Ref{tenancy.WorkspaceRef(ws.UUID), tenancy.UserRef(caller)}
}

// stale reports whether a row has another name of the Workspace. An Org admin may have no row
// of it at all.
func stale(entries []v1alpha1.MembershipIndexEntry, ws tenancy.Workspace) bool {
	row := tenancy.Row(entries, ws.OrgUUID, ws.UUID)
	return row != nil && row.WorkspaceDisplayName != tenancy.IndexedName(ws.DisplayName, len(entries))
}
