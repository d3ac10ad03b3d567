package session_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	idle, maxAge = 168 * time.Hour, 2160 * time.Hour
	verifier     = "a-verifier-of-at-least-forty-three-characters"
	redirectURI  = "http://127.0.0.1:4711/callback"
)

// provider is an identity provider in Dex's manner: it keeps one refresh token per person,
// and a login ends the older one.
type provider struct {
	clock *clocktesting.FakePassiveClock
	life  time.Duration

	mu     sync.Mutex
	number int
	// valid is the refresh token of each person.
	valid map[string]string
	calls int
	// fails is the error of every refresh, or nil. subject is who a refresh answers with, if
	// not the person.
	fails   error
	subject string
	// keeps makes a refresh token valid for good: no refresh gives another one.
	keeps bool
	// unverified is the error for the ID token of an answer, or nil.
	unverified error
	// during is called during a refresh, without the lock.
	during func()
}

func (p *provider) grant(person string) *auth.Grant {
	p.number++
	token := fmt.Sprintf("id-token-%s-%d", person, p.number)
	p.valid[person] = fmt.Sprintf("refresh-token-%s-%d", person, p.number)
	hash := sha256.Sum256([]byte(token))
	return &auth.Grant{IDToken: token, RefreshToken: p.valid[person], Identity: &auth.Identity{
		Kind: auth.Person, Issuer: "https://issuer", Subject: person, Username: "kedge:" + person, Groups: []string{"kedge:dev"},
		IssuedAt: p.clock.Now(), ExpiresAt: p.clock.Now().Add(p.life), Credential: hex.EncodeToString(hash[:]),
	}}
}

// login is a login of a person at the provider.
func (p *provider) login(person string) *auth.Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grant(person)
}

func (p *provider) Refresh(ctx context.Context, refreshToken string) (*auth.Grant, error) {
	p.mu.Lock()
	during := p.during
	p.calls++
	p.mu.Unlock()
	if during != nil {
		during()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if p.fails != nil {
		return nil, p.fails
	}
	for person, valid := range p.valid {
		if valid == refreshToken {
			g := p.grant(person)
			if p.keeps {
				p.valid[person], g.RefreshToken = valid, ""
			}
			if p.unverified != nil {
				return &auth.Grant{RefreshToken: g.RefreshToken}, p.unverified
			}
			if p.subject != "" {
				g.Identity.Subject = p.subject
			}
			return g, nil
		}
	}
	return nil, fmt.Errorf("%w: invalid_request", auth.ErrGrantRefused)
}

func (p *provider) set(f func(p *provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// fixture is a kcp with a few people, an identity provider and a replica of the hub.
type fixture struct {
	*kcpfake.Server
	t        *testing.T
	clock    *clocktesting.FakePassiveClock
	provider *provider
	keys     [][]byte
	*session.Service
}

func setup(t *testing.T) *fixture {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC))
	f := &fixture{
		Server: kcpfake.NewAt(t, clock.Now), t: t, clock: clock, keys: [][]byte{newKey(t)},
		provider: &provider{clock: clock, life: time.Hour, valid: map[string]string{}},
	}
	for _, name := range []string{"alice", "bob"} {
		u := &v1alpha1.User{Spec: v1alpha1.UserSpec{DisplayName: name, Issuer: "https://issuer", Subject: name, RBACIdentity: "kedge:" + name, Registration: v1alpha1.RegistrationApproved}}
		u.Name = name
		f.Put("users", u)
	}
	f.Service = f.replica(f.keys...)
	return f
}

func newKey(t *testing.T) []byte {
	t.Helper()
	key := make([]byte, session.KeySize)
	_, err := rand.Read(key)
	require.NoError(t, err)
	return key
}

func (f *fixture) keyring(keys ...[]byte) *session.Keyring {
	f.t.Helper()
	keyring, err := session.NewKeyring(keys, rand.Reader)
	require.NoError(f.t, err)
	return keyring
}

// replica returns the service of another replica, with session keys of its own.
func (f *fixture) replica(keys ...[]byte) *session.Service {
	f.t.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(f.t, err)
	s := store.New(f.Clients().FailFast(), tree, "users", "orgs")
	service, err := session.New(session.Config{
		Keys: f.keyring(keys...), Sessions: s, Grants: s, Devices: s, Users: s, Provider: f.provider,
		IdleTimeout: idle, MaxAge: maxAge, Clock: f.clock, Random: rand.Reader, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(f.t, err)
	return service
}

func (f *fixture) pass(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func (f *fixture) user(name string) *v1alpha1.User {
	f.t.Helper()
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.True(f.t, f.Read("users", u))
	return u
}

// grant is the grant of a person in kcp.
func (f *fixture) grant(person string) tenancy.ProviderGrant {
	f.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenancy.DefaultNamespace, Name: tenancy.ProviderGrantName(person)}}
	require.True(f.t, f.Read("users", s))
	return tenancy.ProviderGrantOf(s)
}

// request is a login of a person at the command line.
func (f *fixture) request(person string) session.Login {
	f.t.Helper()
	challenge := sha256.Sum256([]byte(verifier))
	return session.Login{
		Client: v1alpha1.SessionCLI, Description: person + "'s laptop", User: f.user(person), Grant: f.provider.login(person),
		Challenge: base64.RawURLEncoding.EncodeToString(challenge[:]), RedirectURI: redirectURI,
	}
}

// login logs a person in at the command line.
func (f *fixture) login(person string) session.Tokens {
	f.t.Helper()
	return f.loginBy(f.request(person))
}

// loginWithoutRefresh is login at a provider that gives no refresh token.
func (f *fixture) loginWithoutRefresh(person string) session.Tokens {
	f.t.Helper()
	l := f.request(person)
	l.Grant.RefreshToken = ""
	return f.loginBy(l)
}

func (f *fixture) loginBy(l session.Login) session.Tokens {
	f.t.Helper()
	code, err := f.Authorize(f.t.Context(), l)
	require.NoError(f.t, err)
	tokens, err := f.Redeem(f.t.Context(), code, verifier, redirectURI)
	require.NoError(f.t, err)
	return tokens
}

// sessionOf is the Session of a secret or code.
func (f *fixture) sessionOf(secret string) *v1alpha1.Session {
	f.t.Helper()
	name, _, _ := strings.Cut(secret, ".")
	s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.True(f.t, f.Read("users", s))
	return s
}

// requireCode requires an OAuth error.
func requireCode(t *testing.T, err error, code string) {
	t.Helper()
	var refusal *session.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, refusal.Description)
}

// requireEnded requires that a refusal names the Session that it ended; none if name is empty.
func requireEnded(t *testing.T, err error, name string) {
	t.Helper()
	var refusal *session.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, name, refusal.Ended)
}

func requireUnavailable(t *testing.T, err error) {
	t.Helper()
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, errs.Unavailable, e.Code)
	require.Positive(t, e.RetryAfter)
}

// requireNoneStored requires that no object in kcp has one of the values, neither in the
// clear nor in base64.
func (f *fixture) requireNoneStored(values ...string) {
	f.t.Helper()
	var all []byte
	for _, resource := range []struct{ group, name string }{{v1alpha1.GroupName, "sessions"}, {v1alpha1.GroupName, "users"}, {"", "secrets"}} {
		for _, o := range f.List("users", resource.group, resource.name) {
			raw, err := json.Marshal(o)
			require.NoError(f.t, err)
			all = append(all, raw...)
		}
	}
	require.Contains(f.t, string(all), "alice", "the objects are there")
	for _, value := range values {
		require.NotContains(f.t, string(all), value)
		require.NotContains(f.t, string(all), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="))
	}
}
