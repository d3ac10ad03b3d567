package httpmw

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxToken is the length of the longest bearer token, in bytes. It is checked
// before anything looks into the token.
const maxToken = 16 << 10

// Caller is who a request comes from.
type Caller struct {
	Identity *auth.Identity
	// User is shared with the views: read only.
	User          *v1alpha1.User
	PlatformAdmin bool
}

// People finds Users in memory.
type People interface {
	ByIdentity(issuer, subject string) (*v1alpha1.User, bool)
}

// SignUp makes the User of an identity that is seen for the first time, exactly
// once, and returns when the views have it. Whom the operator vouches for is let in
// whoever else is, also where their User waits for approval already.
type SignUp func(ctx context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error)

type callerKey struct{}

// CallerOf returns who the request comes from. It panics where Authenticate did
// not run: a route without it is a bug that must not serve.
func CallerOf(r *http.Request) *Caller {
	c, ok := r.Context().Value(callerKey{}).(*Caller)
	if !ok {
		panic("httpmw: route without Authenticate")
	}
	return c
}

// BearerToken returns the one bearer token of a request. Its error never holds
// it.
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

// token68 is the syntax of RFC 6750 tokens, and keeps out whatever could be read
// as a second header or a second token.
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

// Admins are the platform admins: Users by metadata.name, and groups that a
// credential carries.
type Admins struct{ Users, Groups []string }

func (a Admins) has(u *v1alpha1.User, id *auth.Identity) bool {
	return slices.Contains(a.Users, u.Name) || a.byGroup(id)
}

func (a Admins) byGroup(id *auth.Identity) bool {
	return slices.ContainsFunc(id.Groups, func(g string) bool { return slices.Contains(a.Groups, g) })
}

// vouchesFor tells whether the operator's own flags say that the identity, whose User
// has the name or would get it, is a platform admin: the first could otherwise be
// approved by nobody. A name counts of people in the operator's token file only. Of
// others, whoever comes first has it, or waits with it.
func (a Admins) vouchesFor(id *auth.Identity, name string) bool {
	return a.byGroup(id) || id.Issuer == auth.StaticIssuer && slices.Contains(a.Users, name)
}

// RequirePlatformAdmin lets platform admins through and nobody else.
func RequirePlatformAdmin(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if !CallerOf(r).PlatformAdmin {
			return errs.New(errs.Forbidden, "only a platform admin may do this")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// Authenticate finds out who the caller is and refuses those who may not act:
// the soft-deleted (O-8), and those whose registration is not approved.
func Authenticate(a auth.Authenticator, people People, signUp SignUp, admins Admins) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			token, err := BearerToken(r)
			if err != nil {
				return err
			}
			id, ok, err := a.Authenticate(r.Context(), token)
			switch {
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
			caller := &Caller{Identity: id, User: user, PlatformAdmin: admins.has(user, id)}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
			return nil
		})
	}
}

func userOf(ctx context.Context, id *auth.Identity, people People, signUp SignUp, admins Admins) (*v1alpha1.User, error) {
	user, ok := people.ByIdentity(id.Issuer, id.Subject)
	switch {
	case !ok:
		name, _ := tenancy.UserNames(id.Issuer, id.Subject, id.PreferredUsername, id.Email)
		return signUp(ctx, id, admins.vouchesFor(id, name))
	case user.Spec.Registration == v1alpha1.RegistrationPending && admins.vouchesFor(id, user.Name):
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
