package orgs

import (
	"context"
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// remove asks for the Org to be deleted (O-13): it is hidden and frozen at once, and
// purged when the grace is over.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	if err := httpmw.ScopeOf(r).RequireOwnership("delete it"); err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	return h.mark(w, r, true, match)
}

// undelete withdraws the request. An Org that is not deleted stays as it is.
func (h *Handler) undelete(w http.ResponseWriter, r *http.Request) error {
	if err := httpmw.ScopeOf(r).RequireOwnership("undelete it"); err != nil {
		return err
	}
	return h.mark(w, r, false, nil)
}

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, deleted bool, match func(version string) error) error {
	scope := httpmw.ScopeOf(r)
	ctx, cancel := waiting.Write(r)
	defer cancel()
	marked, err := h.Store.MarkOrganization(ctx, scope.Org.Organization, func(_ context.Context, o *v1alpha1.Organization) (map[string]any, error) {
		switch {
		case !o.DeletionTimestamp.IsZero():
			return nil, errs.New(errs.NotFound, "the grace of the organization is over; it is being removed")
		case deleted == (o.Status.DeletionRequestedAt != nil):
			return nil, nil
		case !deleted:
			return map[string]any{"deletionRequestedAt": nil}, nil
		}
		return map[string]any{"deletionRequestedAt": h.Clock.Now().UTC().Format(time.RFC3339)}, nil
	}, match)
	if err != nil {
		return err
	}
	ctx, cancel = waiting.Follow(r)
	defer cancel()
	org := tenancy.Org{Organization: marked, ClusterID: scope.Org.ClusterID}
	_ = h.Await(ctx, func() bool {
		seen, ok := h.Views.Org(marked.Name)
		if !ok {
			return true
		}
		if seen.Deleted() != deleted {
			return false
		}
		org = seen
		return tenancy.DeletionFollowed(seen.Status.Conditions, deleted) && h.indexedDeletion(scope.User, seen)
	})
	httpapi.Tag(w, org.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(org, scope.OrgRole, h.firstAdmin(scope.User, org)))
}

// indexedDeletion tells whether the User's index shows the Org deleted, or not, as it
// is.
func (h *Handler) indexedDeletion(user string, o tenancy.Org) bool {
	for _, e := range h.Views.Index(user) {
		if e.OrgUUID == o.UUID() && e.WorkspaceUUID == "" {
			return (e.SoftDeletedAt != nil) == o.Deleted()
		}
	}
	return true
}
