package httpmw

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Caller is the authenticated caller of a request.
type Caller struct {
	Identity *auth.Identity
	// User is shared with the caches and must not be changed. It is nil for a bot.
	User          *v1alpha1.User
	PlatformAdmin bool
	// Auditor is true for a person whom the operator named as auditor.
	Auditor bool
	// Bot is nil for a person.
	Bot *tenancy.ScopedBot
	// Session is the metadata.name of the Session through which the credential was handed
	// out. It is empty if there is none.
	Session string

	// cookie is true if the credential is the cookie of the Session.
	cookie bool
	// token is the bearer token. It is empty with the cookie.
	token string
	// selfService is true for a request that people may make in any state of their account.
	selfService bool
	expiresAt   time.Time
	valid       func(*Caller) error
	// endsAt is nil if the credential ends at expiresAt.
	endsAt func(*Caller) time.Time
}

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

// Valid reports whether the credential is still good, from caches. The error is the one that
// a new request with the credential gets. It is asked again for whatever outlives the
// authentication: after a body was read, and for open streams.
func (c *Caller) Valid() error { return c.valid(c) }

// Key is the key of the caller's rights and streams: the metadata.name of the User, or
// tenancy.BotKey.
func (c *Caller) Key() string {
	if c.Bot != nil {
		return tenancy.BotKey(c.Bot.Bot.Status.ServiceAccountUID)
	}
	return c.User.Name
}

// MayAudit reports whether the caller may read what happened in all Organizations.
func (c *Caller) MayAudit() bool { return c.PlatformAdmin || c.Auditor }

// ByCookie reports whether the credential is the portal's cookie, which is none for kcp.
func (c *Caller) ByCookie() bool { return c.cookie }

// Bearer returns the bearer token of the request. It refuses the portal's cookie.
func (c *Caller) Bearer() (string, error) {
	if c.cookie {
		return "", unauthenticated("send a token as Authorization: Bearer")
	}
	return c.token, nil
}

// Username is the caller's username in kcp.
func (c *Caller) Username() string { return c.Identity.Username }

// ExpiresAt is when the credential expires or its Session ends, whichever is earlier. It is
// zero if the credential does not expire.
func (c *Caller) ExpiresAt() time.Time { return c.expiresAt }

// EndsAt is when the credential ends by time: when it expires, or when its Session has not been
// used for too long. A use moves it. It is zero if the credential does not end.
func (c *Caller) EndsAt() time.Time {
	if c.endsAt == nil {
		return c.expiresAt
	}
	return c.endsAt(c)
}

// within records a Session through which the credential was handed out.
func (c *Caller) within(s *v1alpha1.Session) {
	c.Session = s.Name
	if end := s.Spec.ExpiresAt.Time; c.expiresAt.IsZero() || end.Before(c.expiresAt) {
		c.expiresAt = end
	}
}

// People is the cache of Users.
type People interface {
	ByIdentity(issuer, subject string) (*v1alpha1.User, bool)
	// ByUsername returns the User with a username in kcp: the oldest one if there are several.
	ByUsername(rbacIdentity string) (*v1alpha1.User, bool)
	ByName(name string) (*v1alpha1.User, bool)
}

// Sessions is the cache of Sessions.
type Sessions interface {
	Session(name string) (*v1alpha1.Session, bool)
	// SessionsOfToken returns the Sessions through which a token was handed out.
	SessionsOfToken(hash string) []*v1alpha1.Session
}

// person checks the credentials of people.
type person struct {
	known    func(*auth.Identity) bool
	cookies  *Cookies
	people   People
	sessions Sessions
	idle     time.Duration
	clock    clock.PassiveClock
}

func (p person) check(c *Caller) error {
	now, id := p.clock.Now(), c.Identity
	if p.known != nil && !p.known(id) {
		return unauthenticated("the token is not known here, or not any more")
	}
	if !c.expiresAt.IsZero() && !now.Before(c.expiresAt) {
		return unauthenticated("the token has expired; log in again: kedge login")
	}
	user, ok := p.people.ByIdentity(id.Issuer, id.Subject)
	if !ok || user.UID != c.User.UID {
		return unauthenticated("the account of this token does not exist any more; log in again: kedge login")
	}
	if err := tenancy.CheckIdentity(user, id.Username); err != nil {
		return err
	}
	// Sign-up refuses the second person with a username in kcp. Two replicas that sign people up
	// at the same moment cannot.
	if first, ok := p.people.ByUsername(id.Username); ok && first.UID != user.UID {
		return errs.New(errs.Forbidden, "another person already has this username; ask a platform admin")
	}
	if err := tenancy.MayAct(user, c.selfService); err != nil {
		return err
	}
	if !id.IssuedAt.IsZero() && tenancy.TokenSignedOut(user, id.IssuedAt) {
		return sessionEnded()
	}
	if c.cookie {
		s, ok := p.sessions.Session(c.Session)
		if !ok || s.Spec.Client != v1alpha1.SessionPortal || tenancy.SessionEnded(s, user, now, p.idle) {
			return sessionEnded()
		}
		if id.Issuer == auth.StaticIssuer {
			if _, _, ok := p.cookies.static(s, user); !ok {
				return sessionEnded()
			}
		}
		return nil
	}
	for _, s := range p.sessions.SessionsOfToken(id.Credential) {
		if tenancy.SessionEnded(s, user, now, p.idle) {
			return sessionEnded()
		}
	}
	return nil
}

func (p person) endsAt(c *Caller) time.Time {
	end := c.expiresAt
	earlier := func(s *v1alpha1.Session) {
		if of := tenancy.SessionEnd(s, p.idle); end.IsZero() || of.Before(end) {
			end = of
		}
	}
	if c.cookie {
		if s, ok := p.sessions.Session(c.Session); ok {
			earlier(s)
		}
		return end
	}
	for _, s := range p.sessions.SessionsOfToken(c.Identity.Credential) {
		earlier(s)
	}
	return end
}

func sessionEnded() error {
	return unauthenticated("the session was ended; log in again: kedge login")
}
