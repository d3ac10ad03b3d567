package workspaces

import (
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// remove asks for the Workspace to be deleted (O-13): it is hidden and frozen at
// once, and purged when the grace is over.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	if err := httpmw.ScopeOf(r).RequireWorkspaceAdmin("delete it"); err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	return h.mark(w, r, true, match)
}

// undelete withdraws the request. A Workspace that is not deleted stays as it is.
func (h *Handler) undelete(w http.ResponseWriter, r *http.Request) error {
	if err := httpmw.ScopeOf(r).RequireWorkspaceAdmin("undelete it"); err != nil {
		return err
	}
	return h.mark(w, r, false, nil)
}

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, deleted bool, match func(version string) error) error {
	scope := httpmw.ScopeOf(r)
	ctx, cancel := waiting.Write(r)
	defer cancel()
	marked, err := h.Store.MarkWorkspace(ctx, scope.Org.ClusterID, *scope.Workspace, func(ws tenancy.Workspace) (map[string]any, error) {
		switch {
		case ws.Terminating:
			return nil, errs.New(errs.NotFound, "the grace of the workspace is over; it is being removed")
		case deleted == (ws.DeletionRequestedAt != nil):
			return nil, nil
		case !deleted:
			return map[string]any{v1alpha1.DeletionRequestedAtAnnotation: nil}, nil
		}
		return map[string]any{v1alpha1.DeletionRequestedAtAnnotation: h.Clock.Now().UTC().Format(time.RFC3339)}, nil
	}, match)
	if err != nil {
		return err
	}
	ctx, cancel = waiting.Follow(r)
	defer cancel()
	_ = h.Views.Await(ctx, func() bool {
		seen, ok := h.Views.Workspace(marked.OrgUUID, marked.UUID)
		if !ok {
			return true
		}
		if seen.Deleted() != deleted {
			return false
		}
		marked = seen
		return tenancy.DeletionFollowed(seen.Status.Conditions, deleted) &&
			indexedDeletion(h.Views.Index(scope.User), seen)
	})
	httpapi.Tag(w, marked.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(marked, scope.WorkspaceRole))
}

// indexedDeletion tells whether the rows show the Workspace deleted, or not, as it
// is.
func indexedDeletion(entries []v1alpha1.MembershipIndexEntry, ws tenancy.Workspace) bool {
	for _, e := range entries {
		if e.OrgUUID == ws.OrgUUID && e.WorkspaceUUID == ws.UUID {
			return (e.SoftDeletedAt != nil) == ws.Deleted()
		}
	}
	return true
}
