package users

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/errs"
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
	return h.Person(name)
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
	return api.Change[*v1alpha1.User]{
		Intent: httpmw.Intent{Reduces: deleted, SameSize: true, Object: target.Name}, Ends: []string{target.Name},
		Write: func(ctx context.Context, match api.Match) (*v1alpha1.User, error) {
			return h.Store.ChangeUser(ctx, target, match, func(ctx context.Context, u *v1alpha1.User) (err error) {
				requested := u.Status.DeletionRequestedAt
				d := tenancy.Deletable{Noun: "account", Requested: requested, Removing: !u.DeletionTimestamp.IsZero()}
				u.Status.DeletionRequestedAt, err = d.Mark(deleted, h.Clock.Now())
				if err == nil && requested != nil && !deleted {
					err = h.WriteEnds(ctx, u.Name)
				}
				return err
			})
		},
		Refs: func(u *v1alpha1.User) []tenancy.Ref { return tenancy.RefsOfRights(u.Name, h.Views.Index(u.Name)) },
		Seen: func(**v1alpha1.User) bool {
			seen, ok := h.Views.ByName(target.Name)
			return !ok || (seen.Status.DeletionRequestedAt != nil) == deleted && h.Bound(target.Name)
		},
		Ended: func(marked *v1alpha1.User, receipt *rest.Receipt) (any, string) {
			return rest.UserDeletion{
				Name: marked.Name, DisplayName: marked.Spec.DisplayName, DeletionRequestedAt: marked.Status.DeletionRequestedAt,
				PurgeAt: tenancy.PurgeAt(marked.Status.DeletionRequestedAt, h.Deletion), Receipt: receipt,
			}, marked.ResourceVersion
		},
		Code: code,
	}.Serve(w, r, &h.Deps)
}
