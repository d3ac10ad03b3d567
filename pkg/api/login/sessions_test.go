package login_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

// sessions does what session.Service does for one login after the other, in memory.
type sessions struct {
	logins  []session.Login
	codes   map[string]session.Login
	secrets map[string]session.Login
	// endedAt is when the caches have it that all ended.
	endedAt *metav1.Time
	cookies map[string]string
	devices map[string]*device
	// made are the secrets, cookies and codes, used ones too, and the logins that are good once.
	made map[string]bool
	// lookups is the number of user codes that were looked at.
	lookups int
	fails   error
}

// device is a device code. answered is set by the person.
type device struct {
	session.DeviceRequest
	code     string
	denied   bool
	answered *session.Login
}

func newSessions() *sessions {
	return &sessions{
		codes: map[string]session.Login{}, secrets: map[string]session.Login{}, cookies: map[string]string{}, devices: map[string]*device{}, made: map[string]bool{},
	}
}

func invalidGrant() error {
	return &session.Error{Code: "invalid_grant", Description: "this is not valid"}
}

func (s *sessions) tokens(l session.Login) session.Tokens {
	secret := "secret-" + rand.Text()
	s.secrets[secret], s.made[secret] = l, true
	return session.Tokens{IDToken: l.Grant.IDToken, ExpiresAt: now.Add(time.Hour), Secret: secret, User: l.User.Name, Session: sessionOf(l.User.Name), Generation: 3}
}

func (s *sessions) Authorize(_ context.Context, l session.Login) (string, error) {
	if s.fails != nil {
		return "", s.fails
	}
	if s.made[l.Once] {
		return "", &session.Error{Code: "access_denied", Description: "this login was completed before"}
	}
	s.logins = append(s.logins, l)
	code := "code-" + rand.Text()
	s.codes[code], s.made[code], s.made[l.Once] = l, true, true
	return code, nil
}

func (s *sessions) Redeem(_ context.Context, code, verifier, redirectURI string) (session.Tokens, error) {
	if s.fails != nil {
		return session.Tokens{}, s.fails
	}
	l, ok := s.codes[code]
	delete(s.codes, code)
	sum := sha256.Sum256([]byte(verifier))
	if !ok || l.Challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || l.RedirectURI != redirectURI {
		return session.Tokens{}, invalidGrant()
	}
	return s.tokens(l), nil
}

func (s *sessions) LogIn(_ context.Context, l session.Login) (string, time.Time, error) {
	if s.fails != nil {
		return "", time.Time{}, s.fails
	}
	s.logins = append(s.logins, l)
	cookie := "cookie-" + rand.Text()
	s.cookies[cookie], s.made[cookie] = l.User.Name, true
	return cookie, now.Add(time.Hour), nil
}

func (s *sessions) Refresh(_ context.Context, secret string) (session.Tokens, error) {
	if s.fails != nil {
		return session.Tokens{}, s.fails
	}
	l, ok := s.secrets[secret]
	if !ok {
		return session.Tokens{}, invalidGrant()
	}
	return s.tokens(l), nil
}

func (s *sessions) Revoke(_ context.Context, secret string) error {
	if s.fails != nil {
		return s.fails
	}
	_, isSecret := s.secrets[secret]
	_, isCookie := s.cookies[secret]
	delete(s.secrets, secret)
	delete(s.cookies, secret)
	if !isSecret && !isCookie {
		return invalidGrant()
	}
	return nil
}

// sessionOf is the name of the Session of a person.
func sessionOf(user string) string { return "session-of-" + user }

func (s *sessions) sessionOf(secret string) (*v1alpha1.Session, bool) {
	user, client := s.cookies[secret], v1alpha1.SessionPortal
	if l, ok := s.secrets[secret]; ok {
		user, client = l.User.Name, v1alpha1.SessionCLI
	}
	held := &v1alpha1.Session{}
	held.Name, held.Spec.UserRef.Name, held.Spec.Client = sessionOf(user), user, client
	held.Spec.EndedAt = s.endedAt
	return held, user != ""
}

func (s *sessions) StartDevice(_ context.Context, d session.DeviceRequest) (session.Device, error) {
	if s.fails != nil {
		return session.Device{}, s.fails
	}
	made := session.Device{DeviceCode: "device-" + rand.Text(), UserCode: "BCDF-GHJK", ExpiresIn: 10 * time.Minute, Interval: 5 * time.Second}
	s.made[made.DeviceCode] = true
	s.devices[made.UserCode] = &device{DeviceRequest: d, code: made.DeviceCode}
	return made, nil
}

func (s *sessions) Device(_ context.Context, userCode string) (session.DeviceRequest, error) {
	s.lookups++
	if s.fails != nil {
		return session.DeviceRequest{}, s.fails
	}
	d, ok := s.devices[canonical(userCode)]
	if !ok || d.denied || d.answered != nil {
		return session.DeviceRequest{}, invalidGrant()
	}
	return d.DeviceRequest, nil
}

// canonical is the user code as the device shows it.
func canonical(userCode string) string {
	letters := strings.ToUpper(strings.ReplaceAll(userCode, "-", ""))
	if len(letters) != 8 {
		return userCode
	}
	return letters[:4] + "-" + letters[4:]
}

func (s *sessions) ConfirmDevice(ctx context.Context, userCode string, l session.Login) error {
	if _, err := s.Device(ctx, userCode); err != nil {
		return err
	}
	l.Client = v1alpha1.SessionCLI
	s.devices[canonical(userCode)].answered = &l
	return nil
}

func (s *sessions) DenyDevice(ctx context.Context, userCode string) error {
	if _, err := s.Device(ctx, userCode); err != nil {
		return err
	}
	s.devices[canonical(userCode)].denied = true
	return nil
}

func (s *sessions) PollDevice(_ context.Context, code string) (session.Tokens, error) {
	if s.fails != nil {
		return session.Tokens{}, s.fails
	}
	for userCode, d := range s.devices {
		switch {
		case d.code != code:
		case d.denied:
			return session.Tokens{}, &session.Error{Code: "access_denied", Description: "the person denied it"}
		case d.answered == nil:
			return session.Tokens{}, &session.Error{Code: "authorization_pending", Description: "the person has not answered yet"}
		default:
			delete(s.devices, userCode)
			return s.tokens(*d.answered), nil
		}
	}
	return session.Tokens{}, &session.Error{Code: "expired_token", Description: "there is no such code"}
}
