package invitations

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// offered finds the Invitation in the path for the client of a request: a client that has its secret, or a
// person with its address. Somebody with another address does not find it. caller is nil for a client that
// has not logged in.
func (h *Handler) offered(r *http.Request, caller *httpmw.Caller) (invited, error) {
	id := chi.URLParam(r, "invitation")
	i := h.find(r.Context(), id)
	secret, presented := h.Cookies.Presented(r, id)
	opens := tenancy.OpensInvitation(i, secret) && presented
	if i != nil && caller != nil && i.Spec.Email != "" {
		opens = addressed(i, caller.Identity)
	}
	if !opens {
		return invited{}, tenancy.NoSuchInvitation()
	}
	in, ok := h.placed(i)
	if !ok {
		return invited{}, tenancy.NoSuchInvitation()
	}
	return in, nil
}

func (h *Handler) offerOf(in invited) rest.OfferedInvitation {
	v := rest.OfferedInvitation{
		ID: in.Name, State: string(h.state(in)), Role: rest.Role(in.Spec.Role), OrgDisplayName: in.org.Spec.DisplayName,
		InvitedBy: in.Spec.InvitedBy.Name, Note: in.Spec.Note, ExpiresAt: in.Spec.ExpiresAt, MembershipExpiresAt: in.Spec.MembershipExpiresAt,
	}
	if in.workspace != nil {
		v.WorkspaceDisplayName = in.workspace.DisplayName
	}
	if u, ok := h.Places.ByName(in.Spec.InvitedBy.Name); ok {
		v.InvitedBy = cmp.Or(u.Spec.DisplayName, u.Name)
	}
	return v
}

// show answers clients who have not logged in, too.
func (h *Handler) show(w http.ResponseWriter, r *http.Request) error {
	in, err := h.offered(r, httpmw.CallerIn(r))
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, h.offerOf(in))
}

// mine lists the open Invitations for the verified address of the caller.
func (h *Handler) mine(w http.ResponseWriter, r *http.Request) error {
	items := []rest.OfferedInvitation{}
	if email := tenancy.NormalEmail(httpmw.CallerOf(r).Identity.VerifiedEmail); email != "" {
		for _, i := range h.Invitations.InvitationsFor(email) {
			if in, ok := h.placed(i); ok && h.state(in) == v1alpha1.InvitationOpen {
				items = append(items, h.offerOf(in))
			}
		}
	}
	slices.SortFunc(items, func(a, b rest.OfferedInvitation) int {
		return cmp.Or(cmp.Compare(a.OrgDisplayName, b.OrgDisplayName), cmp.Compare(a.ID, b.ID))
	})
	return httpapi.Write(w, http.StatusOK, rest.List[rest.OfferedInvitation]{Items: items})
}

func (h *Handler) decline(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r)
	in, err := h.offered(r, caller)
	if err != nil {
		return err
	}
	intent := intentOf(in, audit.Facts{})
	intent.Reduces = true
	c := h.answered(in, intent, v1alpha1.InvitationDeclined, caller.User.Name)
	c.Done = func(*v1alpha1.Organization) {
		h.Count(string(v1alpha1.InvitationDeclined))
		h.Cookies.Drop(w)
	}
	return c.Serve(w, r, &h.Deps)
}

// intentOf names the place in the audit log, because the path does not.
func intentOf(in invited, facts audit.Facts) httpmw.Intent {
	return httpmw.Intent{Org: in.org.UUID(), Workspace: tenancy.InvitedWorkspace(in.Spec), Object: in.Name, Facts: facts}
}

// acceptance is an accepted Invitation.
type acceptance struct {
	org        *v1alpha1.Organization
	membership *v1alpha1.Membership
}

func (h *Handler) accept(w http.ResponseWriter, r *http.Request) error {
	caller := httpmw.CallerOf(r)
	in, err := h.offered(r, caller)
	if err != nil {
		return err
	}
	user, workspace := caller.User.Name, tenancy.InvitedWorkspace(in.Spec)
	name := tenancy.MembershipName(user, workspace)
	if _, member := h.Places.Membership(in.org.ClusterID, name); !member {
		if err := tenancy.CheckMemberships(user, h.Views.Index(user)); err != nil {
			return err
		}
	}
	return api.Change[acceptance]{
		Intent: intentOf(in, factsOf(in.Spec)),
		Write: func(ctx context.Context, _ api.Match) (acceptance, error) {
			o, err := h.Service.accept(ctx, in, user, caller.Valid)
			m := tenancy.NewMembership(user, workspace, in.Spec.Role)
			m.Spec.ExpiresAt = in.Spec.MembershipExpiresAt
			return acceptance{o, m}, err
		},
		Refs: func(acceptance) []tenancy.Ref {
			return []tenancy.Ref{tenancy.UserRef(user), tenancy.OrgRef(in.org.UUID()), tenancy.WorkspaceRef(workspace)}
		},
		Seen: func(a *acceptance) bool {
			m, ok := h.Places.Membership(in.org.ClusterID, name)
			if !ok || !h.carriedOut(in, a.org.Generation) {
				return false
			}
			a.membership = m
			row := tenancy.Row(h.Views.Index(user), in.org.UUID(), workspace)
			return row != nil && row.Role == m.Spec.Role && h.Followed(in.org.UUID(), workspace, user) && m.Status.ObservedGeneration == m.Generation
		},
		Done: func(acceptance) {
			h.Count(string(v1alpha1.InvitationAccepted))
			h.Cookies.Drop(w)
		},
		View: func(a acceptance) (any, string) {
			return rest.AcceptedInvitation{
				Member: wire.Member(a.membership, caller.User), OrgUUID: in.org.UUID(), WorkspaceUUID: workspace,
			}, a.membership.ResourceVersion
		},
		Late: http.StatusAccepted,
	}.Serve(w, r, &h.Deps)
}
