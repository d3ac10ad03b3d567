package login

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// maxReturnTo is the maximum length of return_to, in bytes.
const maxReturnTo = 1024

// login begins the login of the portal.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) error {
	in, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	to, err := returnTo(in)
	if err != nil {
		return err
	}
	return h.begin(w, r, progress{Kind: kindPortal, ReturnTo: to, Description: cleanDescription(r.UserAgent())})
}

// enterPortal gives the browser a session.
func (h *Handler) enterPortal(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, grant *auth.Grant) error {
	login := Event{User: user.Name, Issuer: grant.Identity.Issuer, Action: "login " + p.client()}
	if err := h.intend(r, login); err != nil {
		return err
	}
	cookie, expires, err := h.Sessions.LogIn(r.Context(), session.Login{
		Client: v1alpha1.SessionPortal, Description: p.Description, User: user, Grant: grant, BeganAt: p.beganAt(),
	})
	if err != nil {
		return err
	}
	setCookie(w, sessionCookie, cookie, expires.Sub(h.Clock.Now()))
	if p.ReturnTo != "" {
		h.record(r, login, http.StatusSeeOther)
		redirect(w, p.ReturnTo)
		return nil
	}
	h.record(r, login, http.StatusOK)
	return h.pages.message(w, http.StatusOK, message{Title: "You are logged in", Text: []string{"You are logged in as " + nameOf(user) + "."}})
}

// refuseOnPage shows the refusal to the person.
func refuseOnPage(_ http.ResponseWriter, _ *http.Request, _ progress, _ *v1alpha1.User, e *refusal) error {
	return e
}

// logout ends the session of the cookie and deletes the cookie. It answers the same if there is
// no cookie, or if its session has ended.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) error {
	var in params
	if r.ContentLength != 0 {
		var err error
		if in, err = form(r); err != nil {
			return err
		}
	}
	to, err := returnTo(in)
	if err != nil {
		return err
	}
	for _, cookie := range r.CookiesNamed(sessionCookie) {
		if err := h.end(r, cookie.Value); err != nil {
			return err
		}
	}
	dropCookie(w, sessionCookie)
	if to != "" {
		redirect(w, to)
		return nil
	}
	return h.pages.message(w, http.StatusOK, message{Title: "You are logged out", Text: []string{"Your session in this browser has ended."}})
}

// returnTo returns the parameter return_to, which may be missing.
func returnTo(in params) (string, error) {
	to := in["return_to"]
	if to != "" && !localPath(to) {
		return "", errs.InvalidField("return_to", "must be a path of this hub, such as /ui/")
	}
	return to, nil
}

// localPath reports whether a browser on a page of the hub stays on the hub when it is
// redirected to to. Browsers read a backslash as a slash and drop control characters, and two
// slashes begin another host.
func localPath(to string) bool {
	if len(to) > maxReturnTo || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
		return false
	}
	if strings.ContainsFunc(to, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }) {
		return false
	}
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil
}
