package httpmw

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// InvitationHeader is the header with the secret of an Invitation.
	InvitationHeader = "X-Kedge-Invitation"
	// invitationCookie keeps an Invitation through a login.
	invitationCookie = "__Host-kedge-invitation"
	// invitationCookieAge is the time that a person has for the login.
	invitationCookieAge = 10 * time.Minute
	// maxInvitationSecret is the maximum length of a secret that somebody presents.
	maxInvitationSecret = 128

	sealInvitation = "invitation cookie"
)

// PresentedInvitation is an Invitation that a client presents: its ID and what the client says is its
// secret.
type PresentedInvitation struct{ ID, Secret string }

type invitationKey struct{}

// WithInvitation returns the context of a request that presents an Invitation, for a sign-up.
func WithInvitation(ctx context.Context, p PresentedInvitation) context.Context {
	return context.WithValue(ctx, invitationKey{}, p)
}

// InvitationFrom returns the Invitation that the request of a context presents.
func InvitationFrom(ctx context.Context) (p PresentedInvitation, ok bool) {
	p, ok = ctx.Value(invitationKey{}).(PresentedInvitation)
	return p, ok
}

// Invited finds an open Invitation that the identity may sign up with: the one that the context presents,
// or one for the identity's verified address. It keeps the Invitation for the identity, because each signs
// up one person. The name is empty if there is none.
type Invited func(ctx context.Context, id *auth.Identity) (name string, err error)

// carriesInvitation reports whether Invited may find something.
func carriesInvitation(ctx context.Context, id *auth.Identity) bool {
	_, presented := InvitationFrom(ctx)
	return presented || id.VerifiedEmail != ""
}

// invitationInHeader returns the Invitation in the header of a request to accept it, which may be the
// first request of a person.
func invitationInHeader(r *http.Request) (PresentedInvitation, bool) {
	// The router reads an encoded path as it was sent, and could find another route.
	if r.Method != http.MethodPost || r.URL.RawPath != "" {
		return PresentedInvitation{}, false
	}
	id, found := strings.CutPrefix(r.URL.Path, "/api/invitations/")
	id, accepts := strings.CutSuffix(id, "/accept")
	secrets := r.Header.Values(InvitationHeader)
	if !found || !accepts || !tenancy.IsUUID(id) || len(secrets) != 1 || len(secrets[0]) > maxInvitationSecret {
		return PresentedInvitation{}, false
	}
	return PresentedInvitation{id, secrets[0]}, true
}

// Sealer encrypts what the hub gives to a browser to keep.
type Sealer interface {
	Seal(purpose string, plain []byte) ([]byte, error)
	Open(purpose string, sealed []byte) ([]byte, error)
}

// InvitationCookies keep an Invitation in a browser while its person logs in.
type InvitationCookies struct {
	Keys  Sealer
	Clock clock.PassiveClock
}

type keptInvitation struct {
	PresentedInvitation
	// ExpiresAt is in seconds since 1970.
	ExpiresAt int64
}

// Set gives an Invitation to the browser.
func (c InvitationCookies) Set(w http.ResponseWriter, p PresentedInvitation) error {
	if !tenancy.IsUUID(p.ID) || p.Secret == "" || len(p.Secret) > maxInvitationSecret {
		return errs.New(errs.Invalid, "the link of the invitation is not complete; open it again, as you got it")
	}
	plain, err := json.Marshal(keptInvitation{p, c.Clock.Now().Add(invitationCookieAge).Unix()})
	if err != nil {
		return err
	}
	sealed, err := c.Keys.Seal(sealInvitation, plain)
	if err != nil {
		return err
	}
	http.SetCookie(w, invitationCookieOf(base64.RawURLEncoding.EncodeToString(sealed), int(invitationCookieAge/time.Second)))
	return nil
}

// Drop deletes the cookie.
func (InvitationCookies) Drop(w http.ResponseWriter) { http.SetCookie(w, invitationCookieOf("", -1)) }

func invitationCookieOf(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: invitationCookie, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	}
}

// Of returns the Invitation that the browser keeps.
func (c InvitationCookies) Of(r *http.Request) (PresentedInvitation, bool) {
	cookies := r.CookiesNamed(invitationCookie)
	if len(cookies) != 1 {
		return PresentedInvitation{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cookies[0].Value)
	if err != nil {
		return PresentedInvitation{}, false
	}
	var kept keptInvitation
	plain, err := c.Keys.Open(sealInvitation, sealed)
	if err != nil || json.Unmarshal(plain, &kept) != nil || !c.Clock.Now().Before(time.Unix(kept.ExpiresAt, 0)) {
		return PresentedInvitation{}, false
	}
	return kept.PresentedInvitation, true
}

// Presented returns the secret that a request presents of the Invitation with the ID: in the header, or
// in the cookie.
func (c InvitationCookies) Presented(r *http.Request, id string) (secret string, ok bool) {
	if secrets := r.Header.Values(InvitationHeader); len(secrets) > 0 {
		return secrets[0], len(secrets) == 1 && len(secrets[0]) <= maxInvitationSecret
	}
	kept, ok := c.Of(r)
	return kept.Secret, ok && kept.ID == id
}

// Recognize is Authenticate for a route that needs no login: a request without a credential, or with one
// that is refused, has no caller. It signs nobody up.
func Recognize(a Authentication) func(http.Handler) http.Handler {
	a.SignUp = nil
	p := a.person()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			caller, err := a.callerOf(r)
			if err == nil && caller.Bot == nil {
				caller.valid, caller.endsAt = p.check, p.endsAt
				if caller.Valid() == nil {
					identified(r, caller)
					r = with(r, caller)
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// CallerIn returns the caller of a request, or nil behind Recognize if it has none.
func CallerIn(r *http.Request) *Caller {
	c, _ := r.Context().Value(callerKey{}).(*Caller)
	return c
}

// PerPeer limits each peer to perSecond requests, with bursts of ten seconds' worth. Zero means no limit.
func (l *Limits) PerPeer(limit string, perSecond float64) func(http.Handler) http.Handler {
	buckets := l.buckets(limit, perSecond)
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := buckets.take(network(peerFrom(r.Context()))); err != nil {
				return err
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}
