package session

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// codeLife is the time in which a code must be redeemed.
	codeLife = time.Minute
	// maxDescription is the maximum length of a description, in characters.
	maxDescription = 128
	// maxGroups is the number of groups that a Session keeps.
	maxGroups = 1000
)

// Authorize creates the Session of a login of the command line and returns the
// authorization code for it. A login with the same Once is refused, on every replica.
func (s *Service) Authorize(ctx context.Context, l Login) (code string, err error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	l.Client = v1alpha1.SessionCLI
	now := s.Clock.Now()
	name, err := s.nameOf(l, now)
	if err != nil {
		return "", failure(err)
	}
	code, hash, err := s.Keys.newCode(purposeCode, name)
	if err != nil {
		return "", failure(err)
	}
	_, err = s.create(ctx, name, l, &v1alpha1.SessionCode{
		Hash: hash, Challenge: l.Challenge, RedirectURI: l.RedirectURI, ExpiresAt: metav1.NewTime(now.Add(codeLife)),
	})
	return code, err
}

// LogIn creates the Session of a login in a browser and returns the cookie for it.
func (s *Service) LogIn(ctx context.Context, l Login) (cookie string, expires time.Time, err error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	l.Client = v1alpha1.SessionPortal
	name, err := newName(s.Clock.Now(), s.Random)
	if err != nil {
		return "", time.Time{}, failure(err)
	}
	created, err := s.create(ctx, name, l, nil)
	if err != nil {
		return "", time.Time{}, err
	}
	return s.Keys.secretOf(l.Client, name, created.Spec.Generation), created.Spec.ExpiresAt.Time, nil
}

// create stores the grant of a login and then its Session. The grant is first: the provider
// may have ended the older one already.
func (s *Service) create(ctx context.Context, name string, l Login, code *v1alpha1.SessionCode) (*v1alpha1.Session, error) {
	now := s.Clock.Now()
	spec := v1alpha1.SessionSpec{
		UserRef: v1alpha1.NamedRef{Name: l.User.Name}, Client: l.Client, Description: clean(l.Description), Groups: groupsOf(l.Grant.Identity),
		Email:      emailOf(l.Grant.Identity),
		LastUsedAt: metav1.NewTime(now), ExpiresAt: metav1.NewTime(now.Add(s.MaxAge)), Code: code,
	}
	kept := storedTokenOf(l.Grant)
	// A portal has no ID token; this one says for how long its groups count.
	spec.Tokens = []v1alpha1.SessionToken{kept.record()}
	if l.Client == v1alpha1.SessionCLI {
		sealed, err := s.seal(kept)
		if err != nil {
			return nil, err
		}
		spec.IDToken = sealed
	} else {
		spec.Generation, spec.Rotations = 1, []v1alpha1.SessionRotation{{Generation: 1, At: metav1.NewMicroTime(now)}}
	}
	if err := s.saveGrant(ctx, l.User, l.Grant, now); err != nil {
		return nil, err
	}
	o := &v1alpha1.Session{Spec: spec}
	o.Name, o.Labels = name, map[string]string{v1alpha1.UserLabel: l.User.Name}
	// Its hashes refuse the tokens after its end, also if somebody deletes it by hand.
	o.Finalizers = []string{v1alpha1.CascadeFinalizer}
	created, err := s.Sessions.CreateSession(ctx, o)
	if errs.Is(err, errs.AlreadyExists) && l.Once != "" {
		return nil, &Error{Code: CodeAccessDenied, Description: "this login was completed before" + loginAgain}
	}
	if err != nil {
		return nil, failure(err)
	}
	if err := s.outlives(ctx, created, l); err != nil {
		return nil, err
	}
	s.metrics.logins.WithLabelValues(string(l.Client)).Inc()
	return created, nil
}

// outlives ends a new Session whose person signed out everywhere after they had authenticated: a login
// can wait at a page for minutes. The User is read from kcp and after the Session is written, and EndAll
// writes to the User before it lists the Sessions, so that one of the two sees the other.
func (s *Service) outlives(ctx context.Context, created *v1alpha1.Session, l Login) error {
	user, err := s.person(ctx, created)
	if err == nil && user != nil && !signedOut(user, l) {
		return nil
	}
	// If this fails, nobody has the secret of the Session, its cookie or its code.
	ended := s.end(ctx, created)
	if err = errors.Join(err, ended); err != nil {
		return err
	}
	return errs.New(errs.Forbidden, "this login began before its person signed out everywhere; start the login again")
}

// signedOut reports whether a person signed out everywhere after they had authenticated for a login. The
// ID token tells it by the identity provider's clock, which may be ahead, so that BeganAt counts, too.
func signedOut(user *v1alpha1.User, l Login) bool {
	for _, at := range []time.Time{l.Grant.Identity.IssuedAt, l.BeganAt} {
		if !at.IsZero() && tenancy.TokenSignedOut(user, at) {
			return true
		}
	}
	return false
}

// KeepGrant stores the grant of a login that may never become a Session: the provider may have
// ended the grant that the other Sessions of the User share.
func (s *Service) KeepGrant(ctx context.Context, user *v1alpha1.User, g *auth.Grant) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	return s.saveGrant(ctx, user, g, s.Clock.Now())
}

func (s *Service) saveGrant(ctx context.Context, user *v1alpha1.User, g *auth.Grant, now time.Time) error {
	if g.RefreshToken == "" {
		return nil
	}
	sealed, err := s.Keys.Seal(purposeGrant, []byte(g.RefreshToken))
	if err != nil {
		return failure(err)
	}
	return failure(s.Grants.SaveGrant(ctx, tenancy.ProviderGrant{User: user.Name, Sealed: sealed, SavedAt: now, IssuedAt: g.Identity.IssuedAt}))
}

// Redeem returns the first tokens of a login of the command line. A code that is presented
// a second time ends the Session (RFC 6749, section 4.1.2): somebody else has it, too.
func (s *Service) Redeem(ctx context.Context, code, verifier, redirectURI string) (Tokens, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	name, ok := s.Keys.parseCode(purposeCode, code)
	if !ok {
		return Tokens{}, refused("the code is not valid" + loginAgain)
	}
	held, err := s.begun(ctx, name)
	if err != nil {
		return Tokens{}, err
	}
	tokens, err := s.redeem(ctx, held, code, func(c *v1alpha1.SessionCode) error {
		challenge := sha256.Sum256([]byte(verifier))
		if subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(challenge[:])), []byte(c.Challenge)) == 0 {
			return refused("code_verifier is not that of the authorization request")
		}
		if redirectURI != c.RedirectURI {
			return refused("redirect_uri is not that of the authorization request")
		}
		return nil
	})
	if errors.Is(err, errReplayed) {
		return Tokens{}, s.replayed(ctx, held)
	}
	return tokens, err
}

// begun returns the Session of a code.
func (s *Service) begun(ctx context.Context, name string) (*v1alpha1.Session, error) {
	held, err := s.Sessions.GetSession(ctx, name)
	if errs.Is(err, errs.NotFound) || err == nil && held.Spec.EndedAt != nil {
		return nil, errEnded()
	}
	return held, failure(err)
}

// errReplayed is the refusal of a code that was redeemed before.
var errReplayed = errors.New("the code was presented a second time")

// redeem removes the code of a Session and returns its first tokens. The code has a valid
// MAC. The error is errReplayed if the Session has no code any more.
func (s *Service) redeem(ctx context.Context, held *v1alpha1.Session, code string, check func(*v1alpha1.SessionCode) error) (Tokens, error) {
	if held.Spec.Code == nil {
		return Tokens{}, errReplayed
	}
	user, err := s.person(ctx, held)
	if err != nil {
		return Tokens{}, err
	}
	if s.ended(held, user) || subtle.ConstantTimeCompare([]byte(hashOf(code)), []byte(held.Spec.Code.Hash)) == 0 {
		return Tokens{}, refused("the code is not valid any more" + loginAgain)
	}
	if err := check(held.Spec.Code); err != nil {
		return Tokens{}, err
	}
	kept, err := s.fresh(ctx, held, user)
	if err != nil {
		return Tokens{}, err
	}
	at := tenancy.DecisionTime(s.Clock.Now())
	changed, err := s.Sessions.ChangeSession(ctx, held, func(_ context.Context, o *v1alpha1.Session) error {
		// The answer to this call's own write may have been lost.
		mine := len(o.Spec.Rotations) == 1 && o.Spec.Generation == 1 && o.Spec.Rotations[0].At.Time.Equal(at.Time)
		switch {
		case o.Spec.EndedAt != nil:
			return errEnded()
		case o.Spec.Code == nil && mine:
			return nil
		case o.Spec.Code == nil:
			return errReplayed
		}
		o.Spec.Code, o.Spec.Generation, o.Spec.Rotations = nil, 1, []v1alpha1.SessionRotation{{Generation: 1, At: at}}
		o.Spec.LastUsedAt = metav1.NewTime(at.Time)
		return nil
	})
	if errors.Is(err, errReplayed) {
		return Tokens{}, errReplayed
	}
	if err != nil {
		return Tokens{}, failure(err)
	}
	return s.tokens(changed, kept), nil
}

func (s *Service) replayed(ctx context.Context, held *v1alpha1.Session) error {
	if err := s.end(ctx, held); err != nil {
		return err
	}
	return endedBy(held, "the code was used before; the session has ended"+loginAgain)
}

func (s *Service) tokens(held *v1alpha1.Session, kept storedToken) Tokens {
	return Tokens{
		IDToken: kept.Token, ExpiresAt: kept.ExpiresAt, User: held.Spec.UserRef.Name, Session: held.Name, Generation: held.Spec.Generation,
		Secret: s.Keys.secretOf(v1alpha1.SessionCLI, held.Name, held.Spec.Generation),
	}
}

// clean removes what a description may not have and cuts it.
func clean(description string) string {
	runes := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, description)))
	return string(runes[:min(len(runes), maxDescription)])
}
