package login

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// enterToken is the page that takes a static token.
type enterToken struct {
	ReturnTo string
	// Unknown says that the token was not accepted.
	Unknown bool
}

// tokenPage asks for a static token.
func (h *Handler) tokenPage(w http.ResponseWriter, r *http.Request) error {
	in, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	to, err := returnTo(in)
	if err != nil {
		return err
	}
	return h.pages.token(w, http.StatusOK, enterToken{ReturnTo: to})
}

// tokenLogin makes a session of the portal for the person of a static token. The token is
// taken from the body of this one request, and the Session does not have it.
func (h *Handler) tokenLogin(w http.ResponseWriter, r *http.Request) error {
	in, err := form(r)
	if err != nil {
		return err
	}
	to, err := returnTo(in)
	if err != nil {
		return err
	}
	token, err := in.required("token")
	if err != nil {
		return err
	}
	beganAt := h.Clock.Now()
	user, id, err := h.staticPerson(h.signingUp(r), token)
	if errs.Is(err, errs.Unauthenticated) {
		h.record(r, Event{Action: "login portal"}, http.StatusForbidden)
		return h.pages.token(w, http.StatusForbidden, enterToken{ReturnTo: to, Unknown: true})
	}
	if err != nil {
		return h.decline(w, r, progress{Kind: kindPortal}, user, err)
	}
	login := Event{User: user.Name, Issuer: id.Issuer, Action: "login portal"}
	if err := h.intend(r, login); err != nil {
		return err
	}
	// The grant has no token to refresh, and the session is known by a credential of its own:
	// when it ends, the token stays good.
	began := *id
	began.Credential, began.ExpiresAt = auth.SessionCredential(id), h.Clock.Now()
	cookie, expires, err := h.Sessions.LogIn(r.Context(), session.Login{
		Client: v1alpha1.SessionPortal, Description: cleanDescription(r.UserAgent()), User: user, BeganAt: beganAt,
		Grant: &auth.Grant{Identity: &began},
	})
	if err != nil {
		h.record(r, login, httpapi.StatusOf(err))
		return err
	}
	setCookie(w, sessionCookie, cookie, expires.Sub(h.Clock.Now()))
	h.record(r, login, http.StatusSeeOther)
	if to == "" {
		to = "/"
	}
	redirect(w, to)
	return nil
}

// staticPerson authenticates a static token and returns its User.
func (h *Handler) staticPerson(ctx context.Context, token string) (*v1alpha1.User, *auth.Identity, error) {
	id, ok, err := h.StaticTokens(ctx, token)
	if err == nil && !ok {
		err = errs.New(errs.Unauthenticated, "the token is not known here")
	}
	if err != nil {
		return nil, nil, err
	}
	user, err := h.person(ctx, id)
	return user, id, err
}
