package session

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/recent"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Provider is the identity provider.
type Provider interface {
	// Refresh presents a refresh token. The error wraps auth.ErrGrantRefused if the provider
	// refuses it for good. A Grant beside an error has nothing but the next refresh token.
	Refresh(ctx context.Context, refreshToken string) (*auth.Grant, error)
}

// Sessions reads and writes Sessions in kcp. Changes are made by compare-and-swap: edit is
// called again with the newer object after a conflict.
type Sessions interface {
	CreateSession(ctx context.Context, s *v1alpha1.Session) (*v1alpha1.Session, error)
	GetSession(ctx context.Context, name string) (*v1alpha1.Session, error)
	ListSessions(ctx context.Context, user string) ([]v1alpha1.Session, error)
	ChangeSession(ctx context.Context, held *v1alpha1.Session, edit func(context.Context, *v1alpha1.Session) error) (*v1alpha1.Session, error)
}

// Grants reads and writes the grants of the identity provider in kcp.
type Grants interface {
	SaveGrant(ctx context.Context, g tenancy.ProviderGrant) error
	GetGrant(ctx context.Context, user string) (tenancy.ProviderGrant, error)
	ChangeGrant(ctx context.Context, user string, edit func(tenancy.ProviderGrant) (tenancy.ProviderGrant, error)) (tenancy.ProviderGrant, error)
}

// Devices reads and writes the logins of the device flow in kcp.
type Devices interface {
	CreateDevice(ctx context.Context, d tenancy.DeviceLogin) error
	GetDevice(ctx context.Context, id string) (tenancy.DeviceLogin, error)
	ChangeDevice(ctx context.Context, id string, edit func(tenancy.DeviceLogin) (tenancy.DeviceLogin, error)) (tenancy.DeviceLogin, error)
}

// Users reads and writes Users in kcp.
type Users interface {
	GetUser(ctx context.Context, name string) (*v1alpha1.User, error)
	ChangeUser(ctx context.Context, held *v1alpha1.User, match func(version string) error, edit func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error)
}

// Config is what a Service needs.
type Config struct {
	Keys     *Keyring
	Sessions Sessions
	Grants   Grants
	Devices  Devices
	Users    Users
	// Provider is nil without an identity provider: then Sessions can be ended and no
	// ID token can be refreshed.
	Provider Provider
	// IdleTimeout and MaxAge end a Session that is not used, and every Session.
	IdleTimeout time.Duration
	MaxAge      time.Duration
	// Cached is the cache of Sessions. It may be nil.
	Cached func(name string) (*v1alpha1.Session, bool)
	// Heard is told of an identity that the provider has renewed. It may be nil.
	Heard func(ctx context.Context, u *v1alpha1.User, id *auth.Identity) error
	// Room returns an error while only what ends something is written. It may be nil.
	Room func() error
	// Clock is that of kcp, which all replicas share.
	Clock  clock.PassiveClock
	Random io.Reader
	// Metrics is where kedge_session_* are registered.
	Metrics prometheus.Registerer
}

// Service creates, refreshes and ends Sessions. Its methods return an *Error, or an
// *errs.Error with the code Unavailable, NotFound, Forbidden or InsufficientStorage.
type Service struct {
	Config
	metrics *metrics
	flight  singleflight.Group
	polls   *recent.Cache[string, polling]
}

// maxPolls is the number of device codes of which the last poll is known.
const maxPolls = 4096

// New returns a Service.
func New(c Config) (*Service, error) {
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	return &Service{Config: c, metrics: m, polls: recent.New[string, polling](maxPolls)}, nil
}

// Login is a person whom the identity provider has authenticated, and how they logged in.
type Login struct {
	Client v1alpha1.SessionClient
	// Description is what the client says about itself: its host name or user agent.
	Description string
	User        *v1alpha1.User
	Grant       *auth.Grant
	// Challenge and RedirectURI are those of the authorization request of the command line.
	Challenge   string
	RedirectURI string
	// BeganAt is when the hub last heard of the login before the person completed it, by the clock of kcp.
	// A sign-out everywhere after it refuses the login. Zero means that only the ID token tells.
	BeganAt time.Time
	// Once, if not empty, is a secret of a login that began at BeganAt. Authorize accepts it once.
	Once string
}

// Tokens are what a client gets.
type Tokens struct {
	IDToken   string
	ExpiresAt time.Time
	// Secret gets the next tokens.
	Secret string
	// User is the metadata.name of the User, Session that of the Session, and Generation is that of Secret,
	// for the audit log.
	User, Session string
	Generation    int64
}

// The codes of an Error.
const (
	// CodeInvalidGrant means that the secret or code is not valid any more, or never was.
	CodeInvalidGrant = "invalid_grant"
	// CodeAccessDenied means that a person or the hub refused.
	CodeAccessDenied = "access_denied"
	// CodeAuthorizationPending means that nobody has confirmed the device yet.
	CodeAuthorizationPending = "authorization_pending"
	// CodeSlowDown means that the device polls too often.
	CodeSlowDown = "slow_down"
	// CodeExpiredToken means that the device code or user code has expired.
	CodeExpiredToken = "expired_token"
)

// Error is a refusal in the terms of OAuth (RFC 6749, RFC 8628). Code and Description are for the
// client. Ended is the metadata.name of the Session that the refusal has ended, for the audit log.
type Error struct{ Code, Description, Ended string }

// Error returns the description.
func (e *Error) Error() string { return e.Description }

func refused(description string) error {
	return &Error{Code: CodeInvalidGrant, Description: description}
}

// endedBy is a refusal that has ended a Session.
func endedBy(held *v1alpha1.Session, description string) error {
	return &Error{Code: CodeInvalidGrant, Description: description, Ended: held.Name}
}

// loginAgain ends every message after which a person must log in.
const loginAgain = "; log in again: kedge login"

// operationTimeout limits an operation that continues after its client is gone. It is
// longer than a wait for the lease and two attempts at the identity provider.
const operationTimeout = 45 * time.Second

// retryAfter is the Retry-After of failures that pass by themselves.
const retryAfter = 2 * time.Second

// detached returns a context that outlives the client, so that requests to the identity provider
// and to kcp are completed.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
}

// failure returns the error for the client of a failed read or write. Every error that is not a
// refusal is transient.
func failure(err error) error {
	var refusal *Error
	switch {
	case err == nil, errors.As(err, &refusal), errs.Is(err, errs.Unavailable), errs.Is(err, errs.InsufficientStorage):
		return err
	}
	return unavailable(err, "the session cannot be read or written at the moment; try again")
}

func unavailable(err error, message string) error {
	return errs.Wrap(errs.Unavailable, err, message).After(retryAfter)
}

// person returns the User of a Session, or nil if there is none any more.
func (s *Service) person(ctx context.Context, held *v1alpha1.Session) (*v1alpha1.User, error) {
	u, err := s.Users.GetUser(ctx, held.Spec.UserRef.Name)
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	return u, failure(err)
}

func (s *Service) ended(held *v1alpha1.Session, user *v1alpha1.User) bool {
	return tenancy.SessionEnded(held, user, s.Clock.Now(), s.IdleTimeout)
}

// current reads a Session that has not ended, with its User.
func (s *Service) current(ctx context.Context, name string) (*v1alpha1.Session, *v1alpha1.User, error) {
	held, err := s.Sessions.GetSession(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return nil, nil, errEnded()
	}
	if err != nil {
		return nil, nil, failure(err)
	}
	user, err := s.person(ctx, held)
	if err != nil {
		return nil, nil, err
	}
	if s.ended(held, user) {
		return nil, nil, errEnded()
	}
	return held, user, nil
}

func errEnded() error { return refused("the session has ended" + loginAgain) }
