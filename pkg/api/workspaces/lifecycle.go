package workspaces

import (
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
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

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, deleted bool, to string) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin(to) })
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Reduces: deleted})
	if err != nil {
		return err
	}
	defer cancel()
	marked, err := h.Store.ChangeWorkspace(ctx, scope.Org.ClusterID, *scope.Workspace, match, func(ws tenancy.Workspace, annotations map[string]string) error {
		if !deleted {
			if err := by.JudgeNow(ctx); err != nil {
				return err
			}
		}
		at, err := tenancy.Deletable{Noun: "workspace", Requested: ws.DeletionRequestedAt, Removing: ws.Terminating}.Mark(deleted, h.Clock.Now())
		switch {
		case err != nil:
			return err
		case at == nil:
			delete(annotations, v1alpha1.DeletionRequestedAtAnnotation)
		case at != ws.DeletionRequestedAt:
			annotations[v1alpha1.DeletionRequestedAtAnnotation] = at.Format(time.RFC3339)
		}
		return nil
	})
	if err != nil {
		return err
	}
	waiting.Until(r, h.FollowTimeout, h.Views.Await, refs(marked, scope.User), func() bool {
		seen, ok := h.Views.Workspace(marked.OrgUUID, marked.UUID)
		if !ok {
			return true
		}
		if seen.Deleted() != deleted {
			return false
		}
		marked = seen
		return tenancy.DeletionFollowed(seen.Status.Conditions, deleted) &&
			tenancy.DeletionIndexed(h.Views.Index(scope.User), seen.OrgUUID, seen.UUID, deleted)
	})
	httpapi.Tag(w, marked.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(marked, scope.WorkspaceRole))
}
