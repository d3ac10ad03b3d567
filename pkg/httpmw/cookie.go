package httpmw

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// SessionCookie is the name of the portal's cookie.
const SessionCookie = "__Host-kedge"

const (
	// newSession is the age of a Session up to which the cache may not have it yet.
	newSession = time.Minute
	// newSessionWait is the time that a request waits for a new Session, which another
	// replica created.
	newSessionWait = 2 * time.Second
)

// Cookies verifies the cookies of the portal.
type Cookies struct {
	// Open returns the metadata.name of the Session that a cookie is for. ok is false if the
	// hub has not made the cookie.
	Open func(value string) (session string, ok bool)
	// CrossOrigin refuses requests of other sites.
	CrossOrigin *http.CrossOriginProtection
	// Await waits until a condition on the caches holds. It evaluates the condition again
	// after each change that touches one of refs.
	Await func(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
	// Static returns the identity of the static token that a session began with, by
	// auth.SessionCredential. It is nil if no session begins with a static token.
	Static func(credential string) (id *auth.Identity, ok bool)
}

// byCookie returns the caller of a request with cookies of the name SessionCookie. A cookie
// comes with requests that other sites cause, too, so only reads are exempt from the
// protection.
func (a *Authentication) byCookie(r *http.Request, cookies []*http.Cookie) (*Caller, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := a.Cookies.CrossOrigin.Check(r); err != nil {
			return nil, errs.Wrap(errs.Forbidden, err, "the request comes from another site; send it from a page of this hub, or with a bearer token")
		}
	}
	if len(cookies) != 1 {
		return nil, unauthenticated("send exactly one cookie " + SessionCookie)
	}
	name, ok := a.Cookies.Open(cookies[0].Value)
	if !ok {
		return nil, unauthenticated("the cookie is not valid; log in again")
	}
	s, user, ok := a.session(r.Context(), name)
	if !ok {
		return nil, sessionEnded()
	}
	groups, credential := tenancy.SessionGroups(s, a.Clock.Now()), ""
	if user.Spec.Issuer == auth.StaticIssuer {
		if groups, credential, ok = a.Cookies.static(s, user); !ok {
			return nil, unauthenticated("the token that this session began with is not known here any more; log in again")
		}
	}
	caller := &Caller{Session: name, cookie: true, User: user, expiresAt: s.Spec.ExpiresAt.Time, Identity: &auth.Identity{
		Kind: auth.Person, Issuer: user.Spec.Issuer, Subject: user.Spec.Subject, Username: user.Spec.RBACIdentity,
		Email: user.Spec.Email, DisplayName: user.Spec.DisplayName, Groups: groups, Credential: credential, ExpiresAt: s.Spec.ExpiresAt.Time,
		VerifiedEmail: tenancy.SessionEmail(s, a.Clock.Now()),
	}}
	if caller.Identity.GroupsKnown = user.Spec.Issuer == auth.StaticIssuer; caller.Identity.GroupsKnown {
		if err := a.hear(r.Context(), user, caller.Identity); err != nil {
			return nil, err
		}
	}
	if a.SignUp != nil && user.Spec.Registration == v1alpha1.RegistrationPending && a.Admins.Has(caller.Identity) {
		var err error
		if caller.User, err = a.SignUp(r.Context(), caller.Identity, true); err != nil {
			return nil, err
		}
	}
	return caller, nil
}

// static returns the groups of the static token that a Session began with, and the credential of
// the Session. ok is false if the token is no longer valid, or for another person.
func (c *Cookies) static(s *v1alpha1.Session, user *v1alpha1.User) (groups []string, credential string, ok bool) {
	if c.Static == nil || len(s.Spec.Tokens) != 1 {
		return nil, "", false
	}
	credential = s.Spec.Tokens[0].Hash
	id, ok := c.Static(credential)
	if !ok || id.Subject != user.Spec.Subject {
		return nil, "", false
	}
	return id.Groups, credential, true
}

// session returns a Session and its User. It waits for a new Session, so that a login on one
// replica holds at once on the others.
func (a *Authentication) session(ctx context.Context, name string) (s *v1alpha1.Session, user *v1alpha1.User, ok bool) {
	if s, ok = a.Sessions.Session(name); ok {
		if user, ok = a.People.ByName(s.Spec.UserRef.Name); ok {
			return s, user, true
		}
	}
	if id, err := uuid.Parse(name); err != nil || id.Version() != 7 || a.Clock.Since(timeOf(id)) >= newSession {
		return nil, nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, newSessionWait)
	defer cancel()
	if a.Cookies.Await(ctx, []tenancy.Ref{tenancy.SessionRef(name)}, func() bool { s, ok = a.Sessions.Session(name); return ok }) != nil {
		return nil, nil, false
	}
	owner := s.Spec.UserRef.Name
	if a.Cookies.Await(ctx, []tenancy.Ref{tenancy.UserRef(owner)}, func() bool { user, ok = a.People.ByName(owner); return ok }) != nil {
		return nil, nil, false
	}
	return s, user, true
}

// timeOf returns the time in a version 7 UUID.
func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }
