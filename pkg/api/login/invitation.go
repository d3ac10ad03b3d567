package login

import (
	"context"
	"net/http"
	"net/url"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// invitation keeps the Invitation of a link in the browser and begins a login, which returns to the page of
// the link. The link has its secret in the fragment, so the page sends it, in a body.
func (h *Handler) invitation(w http.ResponseWriter, r *http.Request) error {
	in, err := form(r)
	if err != nil {
		return err
	}
	if err := h.Invitations.Set(w, httpmw.PresentedInvitation{ID: in["id"], Secret: in["secret"]}); err != nil {
		return err
	}
	redirect(w, loginPath+"?"+url.Values{"return_to": {"/ui/invitations/" + in["id"]}}.Encode())
	return nil
}

// signingUp is the context of a sign-up. It presents the Invitation that the browser keeps.
func (h *Handler) signingUp(r *http.Request) context.Context {
	if kept, ok := h.Invitations.Of(r); ok {
		return httpmw.WithInvitation(r.Context(), kept)
	}
	return r.Context()
}
