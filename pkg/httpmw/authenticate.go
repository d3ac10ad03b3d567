package httpmw

import (
	"context"
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxToken is the maximum length of a bearer token, in bytes. It is checked before the token is
// parsed.
const maxToken = 16 << 10

// Caller is the authenticated caller of a request.
type Caller struct {
	Identity *auth.Identity
	// User is shared with the caches and must not be changed.
	User          *v1alpha1.User
	PlatformAdmin bool
}

// People is the cache of Users.
type People interface {
	ByIdentity(issuer, subject string) (*v1alpha1.User, bool)
}

// SignUp creates the User of a new identity exactly once and returns when the caches have it.
// vouched means that the operator's flags name the person as a platform admin: the User is
// approved whatever --registration says, also if it is pending already.
type SignUp func(ctx context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error)

type callerKey struct{}

// CallerOf returns the caller of a request. It panics if Authenticate did not run: a route
// without it must not serve.
func CallerOf(r *http.Request) *Caller {
	c, ok := r.Context().Value(callerKey{}).(*Caller)
	if !ok {
		panic("httpmw: route without Authenticate")
	}
	return c
}

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

// Authenticate authenticates the caller. It refuses Users who are soft-deleted (O-8) or whose
// registration is not approved.
func Authenticate(a auth.Authenticator, people People, signUp SignUp, admins Admins) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			token, err := BearerToken(r)
			if err != nil {
				return err
			}
			id, ok, err := a.Authenticate(r.Context(), token)
			switch {
			case errs.Is(err, errs.Unavailable), errs.Is(err, errs.Forbidden), errs.Is(err, errs.Unauthenticated), errs.Is(err, errs.TooManyRequests):
				return err
			case err != nil:
				return errs.Wrap(errs.Unauthenticated, err, "the token is not valid")
			case !ok:
				return unauthenticated("the token is not known here, or not any more")
			case id.Kind != auth.Person:
				return errs.New(errs.Forbidden, "this endpoint is for people, not for service accounts")
			}
			user, err := userOf(r.Context(), id, people, signUp, admins)
			if err != nil {
				return err
			}
			if err := tenancy.MayAct(user, selfService(r, user.Name)); err != nil {
				return err
			}
			caller := &Caller{Identity: id, User: user, PlatformAdmin: admins.Has(id)}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
			return nil
		})
	}
}

func userOf(ctx context.Context, id *auth.Identity, people People, signUp SignUp, admins Admins) (*v1alpha1.User, error) {
	user, ok := people.ByIdentity(id.Issuer, id.Subject)
	switch {
	case !ok:
		return signUp(ctx, id, admins.Has(id))
	case user.Spec.Registration == v1alpha1.RegistrationPending && admins.Has(id):
		return signUp(ctx, id, true)
	}
	return user, nil
}

// selfService reports whether a request is one that people may make about themselves
// in any state of their account.
func selfService(r *http.Request, name string) bool {
	switch r.URL.Path {
	case "/api/users/me":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	case "/api/users/me/undelete", "/api/users/" + name + "/undelete":
		return r.Method == http.MethodPost
	}
	return false
}
