package users

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// alias is the name for the caller in a path.
const alias = "me"

// target is the User in the path: the caller, or any User for a platform admin. The answer
// for other callers does not reveal which Users exist.
func (h *Handler) target(r *http.Request) (*v1alpha1.User, error) {
	caller, name := httpmw.CallerOf(r), chi.URLParam(r, "name")
	if name == alias || name == caller.User.Name {
		return caller.User, nil
	}
	if !caller.PlatformAdmin {
		return nil, errs.New(errs.Forbidden, "only a platform admin may do this to somebody else's account")
	}
	u, ok := h.Views.ByName(name)
	if !ok {
		return nil, errs.New(errs.NotFound, "there is no person of this name")
	}
	return u, nil
}

// remove requests the deletion of a User (O-8). The User can only undelete themselves until the
// grace period is over, and is then purged.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, http.StatusAccepted, true)
}

func (h *Handler) undelete(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, http.StatusOK, false)
}

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, code int, deleted bool) error {
	target, err := h.target(r)
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Reduces: deleted, Object: target.Name})
	if err != nil {
		return err
	}
	defer cancel()
	marked, err := h.Store.ChangeUser(ctx, target, match, func(ctx context.Context, u *v1alpha1.User) (err error) {
		requested := u.Status.DeletionRequestedAt
		d := tenancy.Deletable{Noun: "account", Requested: requested, Removing: !u.DeletionTimestamp.IsZero()}
		u.Status.DeletionRequestedAt, err = d.Mark(deleted, h.Clock.Now())
		if err == nil && requested != nil && !deleted {
			err = h.WriteEnds(ctx, u.Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	refs := tenancy.RefsOfRights(marked.Name, h.Views.Index(marked.Name))
	waiting.Until(r, h.FollowTimeout, h.Views.Await, refs, func() bool {
		seen, ok := h.Views.ByName(marked.Name)
		return !ok || (seen.Status.DeletionRequestedAt != nil) == deleted && h.Followed(marked.Name)
	})
	httpapi.Tag(w, marked.ResourceVersion)
	return httpapi.Write(w, code, rest.UserDeletion{
		Name: marked.Name, DisplayName: marked.Spec.DisplayName, DeletionRequestedAt: marked.Status.DeletionRequestedAt,
		PurgeAt: tenancy.PurgeAt(marked.Status.DeletionRequestedAt, h.DeletionGrace),
	})
}
