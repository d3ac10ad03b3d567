package login

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// askToContinue shows the person the computer that would be signed in. Any program that listens on the
// loopback port gets the code, and a link can name any port.
func (h *Handler) askToContinue(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, grant *auth.Grant) error {
	if err := h.KeepGrant(r.Context(), user, grant); err != nil {
		return err
	}
	p.Kind, p.State, p.Nonce, p.Verifier = kindContinue, h.NewSecret(), "", ""
	sealed, err := h.seal(sealConfirmation, confirmation{State: p.State, Grant: grant})
	if err != nil {
		return err
	}
	if err := h.setProgress(w, p); err != nil {
		return err
	}
	listener := strings.TrimSuffix(strings.TrimPrefix(p.RedirectURI, "http://"), "/callback")
	contentSecurity(w.Header(), formTargets(listener))
	return h.pages.computer(w, computer{
		Description: p.Description, Peer: httpmw.Peer(r).String(), Listener: listener, Person: nameOf(user), Login: sealed,
	})
}

// formTargets returns where the form of the page leads: to the hub, which redirects to the listener.
// A Content-Security-Policy cannot name an IPv6 address.
func formTargets(listener string) string {
	if strings.HasPrefix(listener, "[") {
		return "'self' http:"
	}
	return "'self' http://" + listener
}

// continueLogin takes the person's answer. Only here the command line gets a code.
func (h *Handler) continueLogin(w http.ResponseWriter, r *http.Request) error {
	in, err := form(r)
	if err != nil {
		return err
	}
	var c confirmation
	p, err := h.takeConfirmation(w, r, kindContinue, in, &c)
	if err != nil {
		return err
	}
	switch in["decision"] {
	case "continue":
		user, err := h.person(r.Context(), c.Grant.Identity)
		if err == nil {
			err = h.sendCode(w, r, p, user, c.Grant)
		}
		if err != nil {
			return h.decline(w, r, p, user, err)
		}
		return nil
	case "cancel":
		return h.decline(w, r, p, nil, &refusal{code: accessDenied, status: http.StatusForbidden, message: "the login was cancelled in the browser"})
	}
	return errs.InvalidField("decision", "must be continue or cancel")
}

// takeConfirmation returns the login in progress to which a form of a page belongs, and opens what the
// form has of it.
func (h *Handler) takeConfirmation(w http.ResponseWriter, r *http.Request, kind string, in params, c *confirmation) (progress, error) {
	return h.takeProgress(w, r, func(p progress) error {
		if p.Kind != kind || h.open(sealConfirmation, in["login"], c) != nil || subtle.ConstantTimeCompare([]byte(c.State), []byte(p.State)) != 1 {
			return errs.New(errs.Invalid, "this form belongs to another login; start the login again in your terminal")
		}
		return nil
	})
}

// sendCode redirects to the command line with a code.
func (h *Handler) sendCode(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, grant *auth.Grant) error {
	login := Event{User: user.Name, Issuer: grant.Identity.Issuer, Action: "login " + p.client()}
	if err := h.intend(r, login); err != nil {
		return err
	}
	code, err := h.Sessions.Authorize(r.Context(), session.Login{
		Client: v1alpha1.SessionCLI, Description: p.Description, User: user, Grant: grant,
		Challenge: p.Challenge, RedirectURI: p.RedirectURI, Once: p.State, BeganAt: p.beganAt(),
	})
	if err != nil {
		return err
	}
	if err := h.setKnown(w, user.Name); err != nil {
		return err
	}
	h.record(r, login, http.StatusSeeOther)
	redirect(w, h.answerURL(p, url.Values{"code": {code}}))
	return nil
}

// refuseComputer tells the command line, which waits for an answer.
func (h *Handler) refuseComputer(w http.ResponseWriter, r *http.Request, p progress, _ *v1alpha1.User, e *refusal) error {
	e.report(w, r)
	redirect(w, h.answerURL(p, url.Values{"error": {codeForClient(e)}, "error_description": {describe(e.message)}}))
	return nil
}

// answerURL is the callback of the command line with the result of a login. iss is the defense of
// RFC 9207 against the answer of another server.
func (h *Handler) answerURL(p progress, result url.Values) string {
	result.Set("state", p.ClientState)
	result.Set("iss", h.ExternalURL)
	return p.RedirectURI + "?" + result.Encode()
}

// codeForClient is the error code of RFC 6749, section 4.1.2.1, for a failed login.
func codeForClient(e *refusal) string {
	switch e.code {
	case temporarilyUnavailable, serverError:
		return e.code
	}
	return accessDenied
}
