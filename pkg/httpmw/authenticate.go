package httpmw

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// maxToken is the maximum length of a bearer token, in bytes. It is checked before the token is
// parsed.
const maxToken = 16 << 10

// useInterval is the time after which the next use of a Session is written.
const useInterval = 5 * time.Minute

// BearerToken returns the bearer token of a request. Errors never contain it.
func BearerToken(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		if len(values) == 0 {
			return "", unauthenticated("send a token as Authorization: Bearer")
		}
		return "", unauthenticated("send exactly one Authorization header")
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", unauthenticated("send a token as Authorization: Bearer")
	}
	if len(token) > maxToken || !token68(token) {
		return "", unauthenticated("the bearer token is malformed")
	}
	return token, nil
}

// token68 reports whether s has the token syntax of RFC 6750. It excludes characters that could
// be read as a second header or a second token.
func token68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" {
		return false
	}
	for i := range len(body) {
		switch c := body[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return true
}

func unauthenticated(message string) error { return errs.New(errs.Unauthenticated, message) }

// Authentication is the configuration of Authenticate.
type Authentication struct {
	Tokens auth.Authenticator
	// Bots authenticates callers with a token of a ServiceAccount. If it is nil, there are only people.
	Bots     *BotAuthentication
	People   People
	Sessions Sessions
	// SignUp creates the User of a new identity. If it is nil, unknown people are refused.
	SignUp SignUp
	// Hear takes note of the groups in a credential of a person. It must be fast where they are known. If it is
	// nil, nobody does. An error means that groups which ended could not be noted.
	Hear   func(ctx context.Context, u *v1alpha1.User, id *auth.Identity) error
	Admins Admins
	// Auditors are approved like everybody else.
	Auditors Admins
	// Cookies makes the cookie of the portal a credential. If it is nil, no cookie is one.
	Cookies *Cookies
	// SessionIdleTimeout is the time without a use after which a Session ends.
	SessionIdleTimeout time.Duration
	// Used is called with the metadata.name of a Session whose last use must be written. It
	// must not block. It can be nil.
	Used func(session string)
	// Known reports whether the credential of an identity that was verified still exists. If it is
	// nil, all do.
	Known func(*auth.Identity) bool
	Clock clock.PassiveClock
}

// Authenticate authenticates the caller. It refuses credentials that Caller.Valid refuses.
func Authenticate(a Authentication) func(http.Handler) http.Handler {
	p := a.person()
	// A method value is allocated where it is made.
	valid, endsAt := p.check, p.endsAt
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			caller, err := a.callerOf(r)
			if err != nil {
				return err
			}
			if caller.Bot != nil {
				identified(r, caller)
				if a.Bots.May != nil && !a.Bots.May(r, *caller.Bot) {
					return errs.New(errs.Forbidden, "bots may not do this; it is for people, or the bot is of another workspace")
				}
				next.ServeHTTP(w, with(r, caller))
				return nil
			}
			caller.PlatformAdmin, caller.selfService = a.Admins.Has(caller.Identity), selfService(r, caller.User.Name)
			caller.Auditor = a.Auditors.Has(caller.Identity)
			caller.valid, caller.endsAt = valid, endsAt
			identified(r, caller)
			if err := caller.Valid(); err != nil {
				return err
			}
			if caller.Session != "" {
				a.use(caller)
			}
			next.ServeHTTP(w, with(r, caller))
			return nil
		})
	}
}

// person checks the credentials of the people whom a authenticates.
func (a *Authentication) person() person {
	return person{known: a.Known, cookies: a.Cookies, people: a.People, sessions: a.Sessions, idle: a.SessionIdleTimeout, clock: a.Clock}
}

func with(r *http.Request, c *Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf returns the caller of a request by its bearer token or, if it has none, by its
// cookie.
func (a *Authentication) callerOf(r *http.Request) (*Caller, error) {
	if a.Cookies != nil && len(r.Header["Authorization"]) == 0 {
		if cookies := r.CookiesNamed(SessionCookie); len(cookies) > 0 {
			return a.byCookie(r, cookies)
		}
	}
	token, err := BearerToken(r)
	if err != nil {
		return nil, err
	}
	if a.Bots != nil && a.Bots.Names(token) {
		return a.Bots.caller(r, token)
	}
	id, ok, err := a.Tokens.Authenticate(r.Context(), token)
	switch {
	case err != nil:
		return nil, notVerified(err)
	case !ok:
		return nil, unauthenticated("the token is not known here, or not any more")
	case id.Kind != auth.Person:
		return nil, errs.New(errs.Forbidden, "this endpoint is for people, not for service accounts")
	}
	ctx := r.Context()
	if presented, ok := invitationInHeader(r); ok {
		ctx = WithInvitation(ctx, presented)
	}
	user, err := a.UserOf(ctx, id)
	if err != nil {
		return nil, err
	}
	caller := &Caller{Identity: id, User: user, token: token, expiresAt: id.ExpiresAt}
	for _, s := range a.Sessions.SessionsOfToken(id.Credential) {
		caller.within(s)
	}
	return caller, nil
}

// use has the use of a Session written if the last one that was written is long ago.
func (a *Authentication) use(c *Caller) {
	if a.Used == nil {
		return
	}
	s, ok := a.Sessions.Session(c.Session)
	if ok && a.Clock.Since(s.Spec.LastUsedAt.Time) >= min(useInterval, a.SessionIdleTimeout/4) {
		a.Used(c.Session)
	}
}

// notVerified returns the error for a token that an Authenticator could not verify. A token
// that cannot be verified at the moment is not a bad one.
func notVerified(err error) error {
	var e *errs.Error
	if errors.As(err, &e) {
		switch e.Code {
		case errs.Forbidden, errs.Unauthenticated, errs.TooManyRequests:
			return err
		case errs.Unavailable:
			later := *e
			later.RetryAfter = cmp.Or(e.RetryAfter, time.Second)
			return &later
		}
	}
	return errs.Wrap(errs.Unauthenticated, err, "the token is not valid")
}

// UserOf returns the User of an identity. It signs an unknown person up if SignUp is set. The context
// can present an Invitation. It has the groups of the identity noted.
func (a *Authentication) UserOf(ctx context.Context, id *auth.Identity) (*v1alpha1.User, error) {
	user, err := a.userOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return user, a.hear(ctx, user, id)
}

func (a *Authentication) hear(ctx context.Context, u *v1alpha1.User, id *auth.Identity) error {
	if a.Hear == nil || !id.GroupsKnown {
		return nil
	}
	return a.Hear(ctx, u, id)
}

func (a *Authentication) userOf(ctx context.Context, id *auth.Identity) (*v1alpha1.User, error) {
	user, ok := a.People.ByIdentity(id.Issuer, id.Subject)
	switch {
	case a.SignUp == nil && !ok:
		return nil, errs.New(errs.Forbidden, "this hub does not know you yet; log in first: kedge login")
	case a.SignUp == nil:
	case !ok:
		return a.SignUp(ctx, id, a.Admins.Has(id))
	case user.Spec.Registration == v1alpha1.RegistrationPending && (a.Admins.Has(id) || carriesInvitation(ctx, id)):
		return a.SignUp(ctx, id, a.Admins.Has(id))
	}
	return user, nil
}

// selfService reports whether a request is one that people may make about themselves
// in any state of their account.
func selfService(r *http.Request, name string) bool {
	// The router reads an encoded path as it was sent, and could find another route.
	if r.URL.RawPath != "" {
		return false
	}
	switch r.URL.Path {
	case "/api/users/me":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	case "/api/users/me/undelete", "/api/users/" + name + "/undelete":
		return r.Method == http.MethodPost
	}
	return false
}
