package workspaces

import (
	"context"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// remove requests the deletion of the Workspace (O-13). It is hidden and deactivated at once,
// and purged when the grace period is over.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, true, "delete it")
}

// undelete withdraws the request. It does not change a Workspace that is not deleted.
func (h *Handler) undelete(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, false, "undelete it")
}

// deleted are the deleted Workspaces that the caller is shown. It leaves out what is being removed: its undelete is refused.
func (h *Handler) deleted(r *http.Request) (items []rest.Workspace) {
	scope := httpmw.ScopeOf(r)
	entries, org := h.Views.Index(scope.User), scope.Org
	for _, ws := range h.Views.Workspaces(org.UUID()) {
		if ws.Deleted() && !ws.Terminating && tenancy.SeesDeleted(entries, org.UUID(), ws.UUID) {
			role := tenancy.WorkspaceRole(entries, org.UUID(), ws.UUID, org.Spec.DefaultAccess)
			items = append(items, h.managed(org, ws, role, tenancy.IsManager(entries, org.UUID(), ws.UUID)))
		}
	}
	return items
}

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, deleted bool, to string) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin(to) })
	if err != nil {
		return err
	}
	return api.Change[tenancy.Workspace]{
		Intent: httpmw.Intent{Reduces: deleted, SameSize: true},
		Write: func(ctx context.Context, match api.Match) (tenancy.Workspace, error) {
			gives := func(tenancy.Workspace) bool { return !deleted }
			return h.grant(ctx, scope, match, by, gives, func(ws tenancy.Workspace, annotations map[string]string) error {
				at, err := tenancy.Deletable{Noun: "workspace", Requested: ws.DeletionRequestedAt, Removing: ws.Terminating}.Mark(deleted, h.Clock.Now())
				switch {
				case err != nil:
					return err
				case at == nil:
					delete(annotations, v1alpha1.DeletionRequestedAtAnnotation)
					if ws.DeletionRequestedAt != nil || tenancy.Ended(ws.ExpiresAt, h.Rights.Clock.Now()) {
						// It would be deleted again by its end.
						tenancy.SetWorkspaceEnd(annotations, nil)
					}
				case at != ws.DeletionRequestedAt:
					annotations[v1alpha1.DeletionRequestedAtAnnotation] = at.Format(time.RFC3339)
				}
				return nil
			})
		},
		Refs: func(ws tenancy.Workspace) []tenancy.Ref { return refs(ws, scope.User) },
		Seen: func(ws *tenancy.Workspace) bool {
			seen, ok := h.Views.Workspace(ws.OrgUUID, ws.UUID)
			if !ok || seen.Deleted() != deleted {
				return !ok
			}
			*ws = seen
			return tenancy.DeletionFollowed(seen.Status.Conditions, deleted) && tenancy.DeletionIndexed(h.Views.Index(scope.User), seen.OrgUUID, seen.UUID, deleted)
		},
		View: h.answer(scope),
	}.Serve(w, r, &h.Deps)
}
