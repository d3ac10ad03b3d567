package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/accounts"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// set is a hub, and a kcp that issues tokens of ServiceAccounts and whose clock is set.
type set struct {
	*assembly
	t     *testing.T
	key   *ecdsa.PrivateKey
	local *clocktesting.FakeClock

	mu    sync.Mutex
	ahead time.Duration
}

func newSet(t *testing.T) *set {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	s := &set{t: t, key: key, local: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	fake := kcpfake.New(t)
	fake.ServeWith(s)
	config := before(t, fake)
	config.Limits.FailedAuthenticationsPerPeer, config.Clock = 0, s.local
	h := &hub{config: config, registry: prometheus.NewRegistry()}
	h.limits, err = httpmw.NewLimits(clock.RealClock{}, h.registry)
	require.NoError(t, err)
	clients := fake.Clients()
	s.assembly = &assembly{hub: h, clients: clients, clusters: bootstrap.Clusters{Providers: "providers"}}
	s.clock = clients.Transport().Clock(s.local)
	s.accounts = accounts.New(clients, "providers", tenancy.BotAudience, s.local)
	s.views, err = views.New(views.Config{Clients: clients, Admin: clients, Clock: transport.Current(s.clock), Metrics: h.registry})
	require.NoError(t, err)
	s.keyring, err = session.NewKeyring([][]byte{make([]byte, 32)}, rand.Reader)
	require.NoError(t, err)
	require.NoError(t, s.accounts.Ask(t.Context()))
	return s
}

// setAhead sets kcp's clock, and the hub hears of it.
func (s *set) setAhead(ahead time.Duration) {
	s.mu.Lock()
	s.ahead = ahead
	s.mu.Unlock()
	_, err := s.accounts.Keys(s.t.Context())
	require.NoError(s.t, err)
}

func (s *set) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local.Now().Add(s.ahead)
}

// token is one that kcp issues now.
func (s *set) token(life time.Duration) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: "kcp"}}, nil)
	require.NoError(s.t, err)
	now := s.now().Unix()
	raw, err := json.Marshal(map[string]any{
		"iss": "https://kcp.default.svc", "sub": "system:serviceaccount:default:ci", "aud": []string{tenancy.BotAudience},
		"iat": now, "nbf": now, "exp": now + int64(life/time.Second), "kubernetes.io": map[string]any{
			"clusterName": "abc", "namespace": "default", "serviceaccount": map[string]any{"name": "ci", "uid": "account"},
			"secret": map[string]any{"name": "kedge-bot-token-1", "uid": "secret"},
		},
	})
	require.NoError(s.t, err)
	signed, err := signer.Sign(raw)
	require.NoError(s.t, err)
	token, err := signed.CompactSerialize()
	require.NoError(s.t, err)
	return token
}

// ServeHTTP answers as kcp does.
func (s *set) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/openid/v1/jwks"):
		answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: "kcp", Algorithm: "ES256", Use: "sig"}}}
	case strings.HasSuffix(r.URL.Path, "/token"):
		answer = map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": map[string]any{"token": s.token(time.Hour)},
		}
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		answer = map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": map[string]any{"authenticated": true},
		}
	default:
		_, _ = io.Copy(w, r.Body)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// The clock of kcp can be set forward, and a computer that was suspended wakes up later than it thinks. The earliest
// time that it may be then stays behind for as long as the hub runs.
func TestBots_areJudgedByTheTimeThatKCPTells(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	bots, err := s.bots(tenancy.BotGate{})
	require.NoError(t, err)
	s.setAhead(10 * time.Minute)
	token := s.token(20 * time.Minute)
	_, ok, err := bots.Tokens.Authenticate(t.Context(), token)
	require.NoError(t, err, "it was issued after the clock was set")
	require.True(t, ok)
	s.setAhead(30 * time.Minute)
	_, ok, err = bots.Tokens.Authenticate(t.Context(), token)
	require.False(t, ok)
	require.ErrorContains(t, err, "has expired")
	_, ok, err = bots.Tokens.Authenticate(t.Context(), s.token(time.Minute))
	require.NoError(t, err)
	require.True(t, ok)
}

func TestClocks_ofRightsFollowKCPAndThoseOfPurgesDoNot(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	bots, err := s.bots(tenancy.BotGate{})
	require.NoError(t, err)
	stored := store.New(s.clients, s.hub.config.Tree, "users", "orgs")
	s.sessions, err = s.newSessions(stored, nil)
	require.NoError(t, err)
	routes := unguarded()
	routes.clock = s.clock
	deps := routes.deps()
	exchange := s.exchange(stored, store.BotTokens{}, nil)
	settings := settings(s.hub.config, s.clock, "", nil)
	login := s.login(httpmw.Authentication{}, nil, nil, exchange)
	for ahead := range map[time.Duration]bool{10 * time.Minute: true, 0: true, -10 * time.Minute: true} {
		s.setAhead(ahead)
		for name, c := range map[string]clock.PassiveClock{
			"bots": bots.Clock, "people": s.people(nil, nil).Clock, "sessions": s.sessions.Clock, "the API": deps.Clock,
			"rights": deps.Rights.Clock, "jobs": exchange.Clock, "controllers": settings.RightsClock, "invitations": s.invitationCookies().Clock, "logins": login.Clock,
		} {
			require.WithinDuration(t, s.now(), c.Now(), time.Second, name)
		}
	}
	s.setAhead(10 * time.Minute)
	for name, c := range map[string]clock.PassiveClock{"the assembly": s.clock, "controllers": settings.Clock} {
		require.WithinDuration(t, s.local.Now().Add(-10*time.Minute), c.Now(), time.Second, "%s: the earliest that was told", name)
	}
}
