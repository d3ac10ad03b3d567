package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// ClientID is the client that the provider knows.
const ClientID = "kedge"

// The paths that the provider serves, for Requests and Intercept.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
	AuthPath      = "/auth"
	TokenPath     = "/token"
)

// Options configure a Provider.
type Options struct {
	// Clock is the clock of iat and exp. Default is the real clock.
	Clock clock.PassiveClock
	// Lifetime is how long ID tokens are valid. Default one hour.
	Lifetime time.Duration
	// ClientSecret is the secret of the client. Empty means a public client.
	ClientSecret string
}

// Claims are claims of an ID token. A nil value removes a claim.
type Claims map[string]any

// Provider is an OpenID Connect provider on loopback.
type Provider struct {
	t       testing.TB
	options Options
	server  *httptest.Server

	mu        sync.Mutex
	signing   jose.JSONWebKey
	published []jose.JSONWebKey
	person    Claims
	intercept func(http.ResponseWriter, *http.Request) bool
	requests  map[string]int
	codes     map[string]login
	refresh   map[string]grant
	serial    int
}

// New starts a provider, which the end of the test stops.
func New(t testing.TB, o Options) *Provider {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Lifetime == 0 {
		o.Lifetime = time.Hour
	}
	p := &Provider{
		t: t, options: o, requests: map[string]int{}, codes: map[string]login{}, refresh: map[string]grant{},
		person: Claims{"sub": "alice", "preferred_username": "alice", "name": "Alice", "email": "alice@example.com", "email_verified": true},
	}
	p.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+DiscoveryPath, p.discovery)
	mux.HandleFunc("GET "+KeysPath, p.keys)
	mux.HandleFunc("GET "+AuthPath, p.authorize)
	mux.HandleFunc("POST "+TokenPath, p.token)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests[r.URL.Path]++
		intercept := p.intercept
		p.mu.Unlock()
		if intercept == nil || !intercept(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.server.Close)
	return p
}

// URL is the issuer.
func (p *Provider) URL() string { return p.server.URL }

// CA is the PEM certificate that verifies the provider's.
func (p *Provider) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Client returns an HTTP client that trusts the provider and follows no redirects.
func (p *Provider) Client() *http.Client {
	client := *p.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// Requests is the number of requests for a path.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// Intercept lets f answer requests first. It returns whether it did. nil ends that.
func (p *Provider) Intercept(f func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept = f
}

// SetDown makes every request fail without an answer, until it is called with false.
func (p *Provider) SetDown(down bool) {
	if !down {
		p.Intercept(nil)
		return
	}
	p.Intercept(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
}

// LogIn sets the person whom the authorization endpoint logs in from now on. nil refuses every
// login with access_denied.
func (p *Provider) LogIn(person Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = person
}

// Rotate replaces the key that signs, and publishes the new one alone.
func (p *Provider) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(p.t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serial++
	p.signing = jose.JSONWebKey{Key: key, KeyID: "key-" + strconv.Itoa(p.serial), Algorithm: string(jose.ES256), Use: "sig"}
	p.published = []jose.JSONWebKey{p.signing.Public()}
}

// Key is the public key that verifies the tokens.
func (p *Provider) Key() jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signing.Public()
}

// Token returns an ID token of alice for ClientID with other claims changed.
func (p *Provider) Token(change Claims) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Claims{"sub": "alice", "preferred_username": "alice", "name": "Alice", "email": "alice@example.com", "email_verified": true}
	maps.Copy(all, change)
	return p.sign(all)
}

// sign signs the claims, with those that every token has. The caller holds the lock.
func (p *Provider) sign(change Claims) string {
	now := p.options.Clock.Now()
	all := Claims{
		"iss": p.server.URL, "aud": ClientID,
		"iat": now.Unix(), "exp": now.Add(p.options.Lifetime).Unix(),
	}
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(all)
	require.NoError(p.t, err)
	return Sign(p.t, p.signing, payload)
}

// Sign returns a payload signed with the provider's key under another key ID.
func (p *Provider) Sign(payload []byte, keyID string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.signing
	key.KeyID = keyID
	return Sign(p.t, key, payload)
}

// Sign returns the compact form of a payload signed with a key of any kind.
func Sign(t testing.TB, key jose.JSONWebKey, payload []byte) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, nil)
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer":                                p.server.URL,
		"authorization_endpoint":                p.server.URL + AuthPath,
		"token_endpoint":                        p.server.URL + TokenPath,
		"jwks_uri":                              p.server.URL + KeysPath,
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256", "RS256", "HS256", "none"},
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: p.published})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
