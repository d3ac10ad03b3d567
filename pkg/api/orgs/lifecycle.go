package orgs

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
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
	if err := scope.RequireOwnership(to, h.Creator.OwnerLeft(scope.Org)); err != nil {
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
	marked, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, match, func(_ context.Context, o *v1alpha1.Organization) (err error) {
		d := tenancy.Deletable{Noun: "organization", Requested: o.Status.DeletionRequestedAt, Removing: !o.DeletionTimestamp.IsZero()}
		o.Status.DeletionRequestedAt, err = d.Mark(deleted, h.Clock.Now())
		return err
	})
	if err != nil {
		return err
	}
	org := tenancy.Org{Organization: marked, ClusterID: scope.Org.ClusterID}
	waiting.Until(r, h.FollowTimeout, h.Await, refs(marked.Name, scope.User), func() bool {
		seen, ok := h.Views.Org(marked.Name)
		if !ok {
			return true
		}
		if seen.Deleted() != deleted {
			return false
		}
		org = seen
		return tenancy.DeletionFollowed(seen.Status.Conditions, deleted) && tenancy.DeletionIndexed(h.Views.Index(scope.User), seen.UUID(), "", deleted)
	})
	httpapi.Tag(w, org.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(org, scope.OrgRole, h.firstAdmin(scope.User, org)))
}
