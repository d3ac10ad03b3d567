package login

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// The paths of the endpoints.
const (
	metadataPath     = "/.well-known/oauth-authorization-server"
	prefix           = "/auth/"
	authorizePath    = prefix + "authorize"
	callbackPath     = prefix + "callback"
	tokenPath        = prefix + "token"
	devicePath       = prefix + "device"
	deviceVerifyPath = prefix + "device/verify"
	deviceLoginPath  = prefix + "device/login"
	revokePath       = prefix + "revoke"
	loginPath        = prefix + "login"
	logoutPath       = prefix + "logout"
	stylePath        = prefix + "style.css"
	tokenLoginPath   = prefix + "token-login"
	invitationPath   = prefix + "invitation"
)

// clientID is the OAuth client ID of the command line, the only client.
const clientID = "kedge-cli"

// Provider is the operator's identity provider.
type Provider interface {
	AuthCodeURL(ctx context.Context, l auth.LoginRequest) (string, error)
	Exchange(ctx context.Context, code string, l auth.LoginRequest) (*auth.Grant, error)
}

// Sessions are the sessions of people.
type Sessions interface {
	Authorize(ctx context.Context, l session.Login) (code string, err error)
	Redeem(ctx context.Context, code, verifier, redirectURI string) (session.Tokens, error)
	LogIn(ctx context.Context, l session.Login) (cookie string, expires time.Time, err error)
	Refresh(ctx context.Context, secret string) (session.Tokens, error)
	Revoke(ctx context.Context, secret string) error
}

// Devices are the device codes of RFC 8628.
type Devices interface {
	StartDevice(ctx context.Context, d session.DeviceRequest) (session.Device, error)
	Device(ctx context.Context, userCode string) (session.DeviceRequest, error)
	ConfirmDevice(ctx context.Context, userCode string, l session.Login) error
	DenyDevice(ctx context.Context, userCode string) error
	PollDevice(ctx context.Context, deviceCode string) (session.Tokens, error)
}

// Keyring encrypts what the hub gives to a browser to keep. What is sealed for one purpose
// opens for no other.
type Keyring interface {
	Seal(purpose string, plain []byte) ([]byte, error)
	// Open returns an error that wraps session.ErrUnknownKey for a text of a key that is not there.
	Open(purpose string, sealed []byte) ([]byte, error)
	// Genuine returns what a secret, a cookie or a code is for. ok is false if the hub has not made
	// it. It reads nothing from kcp.
	Genuine(presented string) (name string, ok bool)
}

// Limits return an error for a request that is one too many. Contexts are those of requests.
type Limits interface {
	// Stranger takes a request that proves nothing from the limit of its peer.
	Stranger(ctx context.Context) error
	// Session takes a request with a genuine secret from the limit of its session or login.
	Session(key string) error
	// Person takes a login from the limit of the person.
	Person(user string) error
	// Exchange takes a code that is presented to the identity provider.
	Exchange(ctx context.Context) error
	// Device takes a login of a device that begins: it is stored, and nobody has authenticated.
	Device(ctx context.Context) error
}

// Event is a login, a logout, the confirmation of a device code or the issue of tokens, for the
// audit log.
type Event struct {
	Stage audit.Stage
	// User is the metadata.name of the User. It is empty if the login failed before the person was
	// known. Issuer is that of a person who logs in.
	User, Issuer string
	// Action is a word with the client, for example "login cli", or "token" with a grant type.
	Action string
	// Code is the HTTP status of an outcome.
	Code int
	// Session is the metadata.name of the Session that ends or gets tokens. Generation is that of the secret
	// that it gets with them.
	Session    string
	Generation int64
}

// event is the event in the audit log.
func (e Event) event() audit.Event {
	by := audit.Actor{Kind: audit.ActorPerson, User: e.User, Issuer: e.Issuer}
	if e.User == "" {
		by.Kind = audit.ActorAnonymous
	}
	of := audit.Event{Stage: e.Stage, Actor: by, Action: e.Action, Code: e.Code}
	// A client can present a genuine secret that is not valid any more, or the form of a login that is over, without end.
	of.Unchanged = e.Session == "" && e.Code >= http.StatusBadRequest
	if e.Session != "" {
		of.Facts = &audit.Facts{Session: e.Session, Generation: e.Generation}
	}
	return of
}

// Handler serves /auth and the metadata of the authorization server.
type Handler struct {
	// Provider is nil if the hub has no identity provider. The endpoints that need one then
	// answer 404.
	Provider Provider
	// StaticTokens authenticates static tokens. It is nil if people cannot sign in to the
	// portal with one. Without StaticTokens, Jobs and Provider the other fields are not used.
	StaticTokens func(ctx context.Context, token string) (id *auth.Identity, ok bool, err error)
	// Jobs verifies the ID tokens of jobs; nil means that no job gets a token. IssueJobToken gives them
	// tokens of bots.
	Jobs          Jobs
	IssueJobToken IssueJobToken
	Sessions      Sessions
	Devices       Devices
	// KeepGrant stores the grant of a login before the person has confirmed the device.
	KeepGrant func(ctx context.Context, user *v1alpha1.User, g *auth.Grant) error
	Keyring   Keyring
	// SignUp returns the User of an identity and creates it if --registration permits it, or if the
	// context presents an Invitation.
	SignUp func(ctx context.Context, id *auth.Identity) (*v1alpha1.User, error)
	// Invitations keep an Invitation in the browser during a login.
	Invitations httpmw.InvitationCookies
	// SessionOf returns the Session of a secret or a cookie, for the audit log.
	SessionOf func(secret string) (*v1alpha1.Session, bool)
	// Audit writes an event. Nobody is logged in if the error of an intent is not nil.
	Audit func(context.Context, audit.Event) error
	// Metrics counts logins; nil counts nothing.
	Metrics *Metrics
	// Available waits a short time for kcp and returns an error if it is unavailable.
	Available func(context.Context) error
	Limits    Limits
	// NewSecret returns a random string of at least 43 characters that RFC 7636 permits in a
	// code_verifier.
	NewSecret func() string
	Clock     clock.PassiveClock
	// ExternalURL is the URL of the hub, without a trailing slash.
	ExternalURL string

	pages pages
}

// Mount adds the routes at the root of the hub.
func (h *Handler) Mount(r chi.Router) {
	h.pages = newPages()
	r.Group(func(r chi.Router) {
		r.Use(headers)
		r.Get(stylePath, h.pages.style)
		h.mountTokenLogin(r)
		if h.Provider == nil {
			h.mountAbsent(r)
			return
		}
		r.Get(metadataPath, httpapi.Handle(h.metadata))
		r.Post(tokenPath, writeJSON(h.admitSecret(h.token, "code", "refresh_token", "device_code")))
		r.Post(devicePath, writeJSON(h.admit(stranger, h.device)))
		r.Post(revokePath, writeJSON(h.admitSecret(h.revoke, "token")))
		r.Get(authorizePath, h.page(h.returning, h.authorize))
		r.Post(authorizePath, h.page(h.inProgress, h.sameOrigin(h.continueLogin)))
		r.Get(callbackPath, h.page(h.inProgress, h.callback))
		r.Get(loginPath, h.page(h.returning, h.login))
		r.Post(invitationPath, h.page(h.returning, h.sameOrigin(h.invitation)))
		r.Get(deviceVerifyPath, h.page(h.returning, h.enterCode))
		r.Get(deviceLoginPath, h.page(h.returning, h.deviceLogin))
		r.Post(deviceVerifyPath, h.page(h.inProgress, h.sameOrigin(h.verifyDevice)))
		r.Post(logoutPath, h.page(h.returning, h.sameOrigin(h.logout)))
	})
}

// mountTokenLogin adds the login with a static token.
func (h *Handler) mountTokenLogin(r chi.Router) {
	if h.StaticTokens != nil {
		r.Get(tokenLoginPath, h.page(h.returning, h.tokenPage))
		r.Post(tokenLoginPath, h.page(h.returning, h.sameOrigin(h.tokenLogin)))
		return
	}
	absent := h.pages.handle(func(http.ResponseWriter, *http.Request) error {
		return errs.New(errs.NotFound, "this hub takes no tokens in a browser; it does with --token-file and a loopback --listen-address")
	})
	r.Get(tokenLoginPath, absent)
	r.Post(tokenLoginPath, absent)
}

// mountAbsent answers the endpoints of a hub without an identity provider. With static tokens
// people can log in to the portal and out of it.
func (h *Handler) mountAbsent(r chi.Router) {
	err := errs.New(errs.NotFound, "this hub has no identity provider; log in with a token: kedge login --token-file FILE")
	absent := func(http.ResponseWriter, *http.Request) error { return err }
	if h.Jobs != nil {
		r.Get(metadataPath, httpapi.Handle(h.metadata))
		r.Post(tokenPath, writeJSON(h.admitSecret(h.token)))
	} else {
		r.Get(metadataPath, httpapi.Handle(absent))
		r.Post(tokenPath, writeJSON(absent))
	}
	for _, path := range []string{devicePath, revokePath} {
		r.Post(path, writeJSON(absent))
	}
	for _, path := range []string{authorizePath, callbackPath, deviceVerifyPath, deviceLoginPath} {
		r.Get(path, h.pages.handle(absent))
	}
	r.Post(authorizePath, h.pages.handle(absent))
	r.Post(deviceVerifyPath, h.pages.handle(absent))
	if h.StaticTokens != nil {
		r.Get(loginPath, h.page(h.returning, h.tokenPage))
		r.Post(invitationPath, h.page(h.returning, h.sameOrigin(h.invitation)))
		r.Post(logoutPath, h.page(h.returning, h.sameOrigin(h.logout)))
		return
	}
	r.Get(loginPath, h.pages.handle(absent))
	r.Post(invitationPath, h.pages.handle(absent))
	r.Post(logoutPath, h.pages.handle(absent))
}

// headers sets the headers of all answers. No answer is cached, because it can contain a code,
// a token or a cookie.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		contentSecurity(header, "'self'")
		next.ServeHTTP(w, r)
	})
}

// contentSecurity sets the Content-Security-Policy of a page with forms for some targets. Browsers
// apply it to the redirects after a form, too.
func contentSecurity(header http.Header, formTargets string) {
	header.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; form-action "+formTargets+"; frame-ancestors 'none'; base-uri 'none'")
}

// sameOrigin refuses requests that a page of another origin sent: they carry the person's
// cookies.
func (h *Handler) sameOrigin(serve httpapi.Handler) httpapi.Handler {
	protection := http.NewCrossOriginProtection()
	// A proxy in front of the hub may change the Host header.
	if u, err := url.Parse(h.ExternalURL); err == nil {
		_ = protection.AddTrustedOrigin(u.Scheme + "://" + u.Host)
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := protection.Check(r); err != nil {
			return errs.Wrap(errs.Forbidden, err, "this request comes from a page of another site")
		}
		return serve(w, r)
	}
}

// redirect answers with a redirect without a body, because the URL can contain a code.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
