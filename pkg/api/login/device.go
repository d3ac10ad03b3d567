package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// device begins the login of a command line whose person uses a browser elsewhere.
func (h *Handler) device(w http.ResponseWriter, r *http.Request) error {
	in, err := clientForm(r)
	if err != nil {
		return err
	}
	if err := h.Limits.Device(r.Context()); err != nil {
		return err
	}
	d, err := h.Devices.StartDevice(r.Context(), session.DeviceRequest{Description: cleanDescription(in["description"]), Peer: httpmw.Peer(r).String()})
	if err != nil {
		return err
	}
	verify := h.ExternalURL + deviceVerifyPath
	return httpapi.Write(w, http.StatusOK, rest.Device{
		DeviceCode: d.DeviceCode, UserCode: d.UserCode,
		VerificationURI: verify, VerificationURIComplete: verify + "?" + url.Values{"user_code": {d.UserCode}}.Encode(),
		ExpiresIn: int64(d.ExpiresIn / time.Second), Interval: int64(d.Interval / time.Second),
	})
}

// enterCode is the page on which the person types the code of the device. The code of a link is not
// looked at: somebody else may have sent the link, with the code of a device of their own (RFC 8628,
// section 5.4).
func (h *Handler) enterCode(w http.ResponseWriter, r *http.Request) error {
	if _, err := parse(r.URL.RawQuery); err != nil {
		return err
	}
	return h.pages.code(w, http.StatusOK, enterCode{})
}

// verifyDevice takes the forms of the pages about a device: the code that the person has typed, and later
// their answer.
func (h *Handler) verifyDevice(w http.ResponseWriter, r *http.Request) error {
	in, err := form(r)
	if err != nil {
		return err
	}
	if typed, ok := in["user_code"]; ok {
		return h.takeCode(w, typed)
	}
	return h.confirm(w, r, in)
}

// takeCode keeps a code that the person has typed in their browser, and leads to the login. It does not
// look at the code: only people who have logged in learn which codes there are.
func (h *Handler) takeCode(w http.ResponseWriter, typed string) error {
	code := shownCode(typed)
	if code == "" {
		return h.pages.code(w, http.StatusBadRequest, enterCode{Unknown: true})
	}
	if err := h.setProgress(w, progress{Kind: kindCode, State: h.NewSecret(), UserCode: code}); err != nil {
		return err
	}
	return h.pages.code(w, http.StatusOK, enterCode{UserCode: code, LogIn: deviceLoginPath})
}

// deviceLogin begins the login of the person who has typed a code in this browser. A page of another site
// cannot begin it: it could place its own window over the page that comes next.
func (h *Handler) deviceLogin(w http.ResponseWriter, r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return errs.New(errs.Forbidden, "this request comes from a page of another site; enter the code of your terminal at "+h.ExternalURL+deviceVerifyPath)
	}
	p, err := h.progress(r)
	if errors.Is(err, session.ErrUnknownKey) {
		return err
	}
	if err != nil || p.Kind != kindCode {
		return errs.New(errs.Invalid, "first enter the code that your terminal shows, at "+h.ExternalURL+deviceVerifyPath)
	}
	return h.begin(w, r, progress{Kind: kindDevice, UserCode: p.UserCode})
}

// maxUserCode is the number of letters of a user code that are looked at.
const maxUserCode = 16

// shownCode returns a user code as the device shows it. People enter it in either case, with or
// without the dash.
func shownCode(code string) string {
	letters := strings.Map(func(c rune) rune {
		if c < 'A' || c > 'Z' {
			return -1
		}
		return c
	}, strings.ToUpper(code))
	letters = letters[:min(len(letters), maxUserCode)]
	if half := len(letters) / 2; half > 0 {
		letters = letters[:half] + "-" + letters[half:]
	}
	return letters
}

// confirmation is what a page to confirm a login sends back, encrypted. State binds it to the
// cookie of the browser that logged in.
type confirmation struct {
	State string      `json:"state"`
	Grant *auth.Grant `json:"grant"`
}

// askToConfirm shows the person what they would let in.
func (h *Handler) askToConfirm(w http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, grant *auth.Grant) error {
	if err := h.KeepGrant(r.Context(), user, grant); err != nil {
		return err
	}
	d, err := h.Devices.Device(r.Context(), p.UserCode)
	if codeUnknown(err) {
		// The login is over, so that each code that somebody guesses costs them a login.
		h.record(r, Event{User: user.Name, Issuer: grant.Identity.Issuer, Action: "login " + p.client()}, http.StatusBadRequest)
		return h.pages.code(w, http.StatusBadRequest, enterCode{UserCode: p.UserCode, Unknown: true})
	}
	if err != nil {
		return err
	}
	next := progress{Kind: kindConfirm, State: h.NewSecret(), UserCode: p.UserCode}
	sealed, err := h.seal(sealConfirmation, confirmation{State: next.State, Grant: grant})
	if err != nil {
		return err
	}
	if err := h.setProgress(w, next); err != nil {
		return err
	}
	return h.pages.confirm(w, confirm{
		UserCode: p.UserCode, Description: cleanDescription(d.Description), Peer: d.Peer, Person: nameOf(user), Login: sealed,
	})
}

// refuseDevice shows the refusal on a page. The command line need not wait for a person whom the hub refuses.
func (h *Handler) refuseDevice(_ http.ResponseWriter, r *http.Request, p progress, user *v1alpha1.User, e *refusal) error {
	if user != nil && e.code == accessDenied {
		if err := h.Devices.DenyDevice(r.Context(), p.UserCode); err != nil && !codeUnknown(err) {
			return err
		}
	}
	return e
}

// confirm takes the person's answer.
func (h *Handler) confirm(w http.ResponseWriter, r *http.Request, in params) error {
	var c confirmation
	p, err := h.takeConfirmation(w, r, kindConfirm, in, &c)
	if err != nil {
		return err
	}
	user, err := h.person(r.Context(), c.Grant.Identity)
	if err != nil {
		return err
	}
	answered := Event{User: user.Name, Issuer: c.Grant.Identity.Issuer, Action: in["decision"] + " device"}
	switch in["decision"] {
	case "confirm":
		if err := h.intend(r, answered); err != nil {
			return err
		}
		err = h.Devices.ConfirmDevice(r.Context(), p.UserCode, session.Login{
			Client: v1alpha1.SessionCLI, User: user, Grant: c.Grant, BeganAt: p.beganAt(),
		})
	case "deny":
		// A refusal does not depend on the audit log.
		_ = h.intend(r, answered)
		err = h.Devices.DenyDevice(r.Context(), p.UserCode)
	default:
		return errs.InvalidField("decision", "must be confirm or deny")
	}
	if codeUnknown(err) {
		err = codeExpired()
	}
	if err != nil {
		h.record(r, answered, httpapi.StatusOf(err))
		return err
	}
	h.record(r, answered, http.StatusOK)
	if in["decision"] == "deny" {
		return h.pages.message(w, http.StatusOK, message{Title: "Login denied", Text: []string{"The command line is not logged in. If you did not start this login yourself, somebody may have tried to use your account: tell a platform admin."}})
	}
	return h.pages.message(w, http.StatusOK, message{Title: "You are logged in", Text: []string{"Your command line is logged in as " + nameOf(user) + ". Return to your terminal; you can close this page."}})
}

// codeUnknown reports whether an error says that there is no such code, or not any more.
func codeUnknown(err error) bool {
	var e *session.Error
	return errors.As(err, &e)
}

func codeExpired() error {
	return errs.New(errs.Invalid, "this code has expired or was answered already; start the login again in your terminal")
}
