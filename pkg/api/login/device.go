package login

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// deviceAnswer is the answer of RFC 8628, section 3.2.
type deviceAnswer struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int64  `json:"expires_in"`
	Interval                int64  `json:"interval"`
}

// device begins the login of a command line whose person uses a browser elsewhere.
func (h *Handler) device(w http.ResponseWriter, r *http.Request) error {
	in, err := clientForm(r)
	if err != nil {
		return err
	}
	if err := h.LimitDevices(r.Context()); err != nil {
		return err
	}
	d, err := h.Devices.StartDevice(r.Context(), session.DeviceRequest{Description: cleanDescription(in["description"]), Peer: httpmw.Peer(r).String()})
	if err != nil {
		return err
	}
	verify := h.ExternalURL + deviceVerifyPath
	return httpapi.Write(w, http.StatusOK, deviceAnswer{
		DeviceCode: d.DeviceCode, UserCode: d.UserCode,
		VerificationURI: verify, VerificationURIComplete: verify + "?" + url.Values{"user_code": {d.UserCode}}.Encode(),
		ExpiresIn: int64(d.ExpiresIn / time.Second), Interval: int64(d.Interval / time.Second),
	})
}

// enterCode is the page on which the person enters the code of the device. With a code that
// exists it leads to the login.
func (h *Handler) enterCode(w http.ResponseWriter, r *http.Request) error {
	in, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	code := in["user_code"]
	if code == "" {
		return h.pages.code(w, http.StatusOK, enterCode{})
	}
	switch _, err := h.Devices.Device(r.Context(), code); {
	case codeUnknown(err):
		return h.pages.code(w, http.StatusBadRequest, enterCode{UserCode: printable(code), Unknown: true})
	case err != nil:
		return err
	}
	return h.pages.code(w, http.StatusOK, enterCode{UserCode: shownCode(code), LogIn: deviceLoginPath + "?" + url.Values{"user_code": {shownCode(code)}}.Encode()})
}

// deviceLogin begins the login of the person who entered a code.
func (h *Handler) deviceLogin(w http.ResponseWriter, r *http.Request) error {
	in, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	code, err := in.required("user_code")
	if err != nil {
		return err
	}
	switch _, err := h.Devices.Device(r.Context(), code); {
	case codeUnknown(err):
		return h.pages.code(w, http.StatusBadRequest, enterCode{UserCode: printable(code), Unknown: true})
	case err != nil:
		return err
	}
	return h.begin(w, r, progress{Kind: kindDevice, UserCode: shownCode(code)})
}

// shownCode returns a user code as the device shows it. People enter it in either case, with or
// without the dash.
func shownCode(code string) string {
	letters := strings.Map(func(c rune) rune {
		if c < 'A' || c > 'Z' {
			return -1
		}
		return c
	}, strings.ToUpper(code))
	if half := len(letters) / 2; half > 0 {
		letters = letters[:half] + "-" + letters[half:]
	}
	return letters
}

// confirmation is what the page to confirm a code sends back, encrypted. State binds it to the
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
		return codeExpired()
	}
	if err != nil {
		return err
	}
	next := progress{Kind: kindConfirm, State: h.NewSecret(), UserCode: p.UserCode}
	sealed, err := h.seal(sealDevice, confirmation{State: next.State, Grant: grant})
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

// confirm takes the person's answer.
func (h *Handler) confirm(w http.ResponseWriter, r *http.Request) error {
	in, err := form(r)
	if err != nil {
		return err
	}
	var c confirmation
	p, err := h.takeProgress(w, r, func(p progress) error {
		if p.Kind != kindConfirm || h.open(sealDevice, in["login"], &c) != nil || subtle.ConstantTimeCompare([]byte(c.State), []byte(p.State)) != 1 {
			return errs.New(errs.Invalid, "this form belongs to another login; start again with the code that your terminal shows")
		}
		return nil
	})
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
		err = h.Devices.ConfirmDevice(r.Context(), p.UserCode, session.Login{Client: v1alpha1.SessionCLI, User: user, Grant: c.Grant})
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
