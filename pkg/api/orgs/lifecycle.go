package orgs

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// remove requests the deletion of the Organization (O-13). It is hidden and deactivated at
// once, and purged when the grace period is over.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, true, "delete it")
}

// undelete withdraws the request. It does not change an Organization that is not deleted.
func (h *Handler) undelete(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, false, "undelete it")
}

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, deleted bool, to string) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireOwnership(to, h.Scopes.Creator.OwnerLeft(scope.Org)); err != nil {
		return err
	}
	return api.Change[tenancy.Org]{
		Intent: httpmw.Intent{Reduces: deleted, SameSize: true},
		Write: func(ctx context.Context, match api.Match) (tenancy.Org, error) {
			return h.MarkOrg(ctx, scope.Org, match, deleted, func(o *v1alpha1.Organization) error {
				return tenancy.CheckStaysAdmin(o, scope.User)
			})
		},
		Refs: func(tenancy.Org) []tenancy.Ref { return refs(scope.Org.UUID(), scope.User) },
		Seen: func(org *tenancy.Org) bool {
			seen, ok := h.Views.Org(scope.Org.UUID())
			if !ok || seen.Deleted() != deleted {
				return !ok
			}
			*org = seen
			return tenancy.DeletionFollowed(seen.Status.Conditions, deleted) && tenancy.DeletionIndexed(h.Views.Index(scope.User), seen.UUID(), "", deleted)
		},
		View: h.answer(scope),
	}.Serve(w, r, &h.Deps)
}
