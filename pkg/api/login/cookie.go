package login

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// The cookies. The prefix makes browsers accept them from this very host over HTTPS only.
const (
	loginCookie   = "__Host-kedge-login"
	sessionCookie = "__Host-kedge"
	// knownCookie has no right. It tells a browser of a person from one of a stranger, for limits.
	knownCookie = "__Host-kedge-known"
)

// maxLogin is the time that a person has for a login, from its begin to its end.
const maxLogin = 10 * time.Minute

// maxKnown is the time for which a browser is known after a login of a command line in it.
const maxKnown = 90 * 24 * time.Hour

// known is the content of the known cookie.
type known struct {
	// User is the metadata.name of the User.
	User string `json:"user"`
	// ExpiresAt is in seconds since 1970.
	ExpiresAt int64 `json:"expiresAt"`
}

// setKnown sets the known cookie.
func (h *Handler) setKnown(w http.ResponseWriter, user string) error {
	value, err := h.seal(sealKnown, known{User: user, ExpiresAt: h.Clock.Now().Add(maxKnown).Unix()})
	if err == nil {
		setCookie(w, knownCookie, value, maxKnown)
	}
	return err
}

// The purposes that the keyring seals for.
const (
	sealLogin        = "login cookie"
	sealConfirmation = "login confirmation"
	sealKnown        = "known browser"
)

// The kinds of login.
const (
	kindCLI    = "cli"
	kindPortal = "portal"
	kindDevice = "device"
	// kindCode comes before kindDevice: the person has typed the code and must log in.
	kindCode = "code"
	// kindConfirm follows kindDevice: the person is known and must confirm the code.
	kindConfirm = "confirm"
	// kindContinue follows kindCLI: the person is known and must confirm the computer.
	kindContinue = "continue"
)

// progress is a login in progress. The browser keeps it, encrypted, in a cookie.
type progress struct {
	Kind string `json:"kind"`
	// State binds what the browser brings back to this cookie: the state of the provider's
	// callback, or the token of the form of kindConfirm and kindContinue. Nothing brings back that of kindCode.
	// Nonce and Verifier are those of the request to the provider.
	State    string `json:"state"`
	Nonce    string `json:"nonce,omitempty"`
	Verifier string `json:"verifier,omitempty"`
	// RedirectURI, ClientState, Challenge and Description are those of the command line.
	RedirectURI string `json:"redirectURI,omitempty"`
	ClientState string `json:"clientState,omitempty"`
	Challenge   string `json:"challenge,omitempty"`
	Description string `json:"description,omitempty"`
	// ReturnTo is where kindPortal ends.
	ReturnTo string `json:"returnTo,omitempty"`
	// UserCode is the code of kindCode, kindDevice and kindConfirm, which the person has typed.
	UserCode string `json:"userCode,omitempty"`
	// ExpiresAt is in seconds since 1970.
	ExpiresAt int64 `json:"expiresAt"`
}

// client names the client of a login in the audit log.
func (p progress) client() string {
	switch p.Kind {
	case kindCode, kindConfirm:
		return kindDevice
	case kindContinue:
		return kindCLI
	}
	return p.Kind
}

// beganAt is when the browser got this progress.
func (p progress) beganAt() time.Time { return time.Unix(p.ExpiresAt, 0).Add(-maxLogin) }

// onPage reports whether the login waits for the person on a page of the hub, and not for the provider.
func (p progress) onPage() bool {
	return p.Kind == kindCode || p.Kind == kindConfirm || p.Kind == kindContinue
}

// begin starts a login: it gives p to the browser and sends the browser to the provider.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, p progress) error {
	p.State, p.Nonce, p.Verifier = h.NewSecret(), h.NewSecret(), h.NewSecret()
	to, err := h.Provider.AuthCodeURL(r.Context(), h.loginRequest(p))
	if err != nil {
		return err
	}
	if err := h.setProgress(w, p); err != nil {
		return err
	}
	redirect(w, to)
	return nil
}

func (h *Handler) loginRequest(p progress) auth.LoginRequest {
	return auth.LoginRequest{RedirectURI: h.ExternalURL + callbackPath, State: p.State, Nonce: p.Nonce, Verifier: p.Verifier}
}

// setProgress sets the login cookie.
func (h *Handler) setProgress(w http.ResponseWriter, p progress) error {
	p.ExpiresAt = h.Clock.Now().Add(maxLogin).Unix()
	value, err := h.seal(sealLogin, p)
	if err != nil {
		return err
	}
	setCookie(w, loginCookie, value, maxLogin)
	return nil
}

// takeProgress returns the login in progress of this browser and deletes its cookie: a login can
// be finished once. A cookie that another replica may be able to open stays. belongs compares the request
// with the login. A request that belongs to another login is refused and leaves the cookie alone, so that
// nobody ends a login with a link.
func (h *Handler) takeProgress(w http.ResponseWriter, r *http.Request, belongs func(progress) error) (progress, error) {
	p, err := h.progress(r)
	if err != nil {
		if !errors.Is(err, session.ErrUnknownKey) {
			dropCookie(w, loginCookie)
		}
		return progress{}, err
	}
	if err := belongs(p); err != nil {
		return progress{}, err
	}
	dropCookie(w, loginCookie)
	return p, nil
}

// progress returns the login in progress of this browser. The error wraps session.ErrUnknownKey if another replica may
// be able to tell.
func (h *Handler) progress(r *http.Request) (progress, error) {
	var p progress
	err := errors.New("there is not one cookie")
	if cookies := r.CookiesNamed(loginCookie); len(cookies) == 1 {
		err = h.open(sealLogin, cookies[0].Value, &p)
	}
	if errors.Is(err, session.ErrUnknownKey) {
		// Anybody can invent the name of a key, so this is no error of the server: it would raise alarms.
		return progress{}, &refusal{
			code: temporarilyUnavailable, status: http.StatusBadRequest, title: "Try again in a moment", err: err,
			message: "this replica of the hub does not have the key of your login yet; " +
				"reload this page in a moment, or start the login again",
		}
	}
	if err != nil || !h.Clock.Now().Before(time.Unix(p.ExpiresAt, 0)) {
		return progress{}, errs.New(errs.Invalid, "no login is in progress in this browser, or it took longer than ten minutes; start the login again")
	}
	return p, nil
}

func (h *Handler) seal(purpose string, v any) (string, error) {
	// Escapes for HTML would make a cookie larger than browsers accept.
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	sealed, err := h.Keyring.Seal(purpose, plain.Bytes())
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

func (h *Handler) open(purpose, value string, into any) error {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return errors.New("not base64url")
	}
	plain, err := h.Keyring.Open(purpose, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}

// setCookie sets a cookie that browsers send to this host only, and not with requests that pages
// of other sites make. The identity provider leads back with a navigation, which Lax permits.
func setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(max(age/time.Second, 1)),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	})
}

// dropCookie deletes a cookie.
func dropCookie(w http.ResponseWriter, name string) {
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode})
}
