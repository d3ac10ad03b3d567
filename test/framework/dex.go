package framework

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/server"
)

// The clients of Dex. The hub logs people in with HubClient. Tokens for OtherClient stand for
// those that kubelogin or another program fetched.
const (
	HubClient   = "kedge"
	OtherClient = "kubelogin"
)

// HubClientSecret is the secret of HubClient.
const HubClientSecret = "secret-of-the-client-kedge"

const otherClientSecret = "secret-of-the-client-kubelogin"

// DexPassword is the password of every person at Dex, and dexHash its bcrypt hash.
const (
	DexPassword = "password-of-people-at-dex"
	dexHash     = "$2a$10$4HznFFWCHonsfzQu4tvPCeTVtN26t6vZuuwz1iV8aXcGj4PGUZs4K"
)

// dexHubs is the number of hubs that can use one Dex, which must know the redirect URI of
// each when it starts.
const dexHubs = 64

// DexPeople are the people that can log in to Dex. They have the email address
// {name}@example.com.
func DexPeople() []string { return []string{"alice", "bob", "carol"} }

// Dex is the identity provider Dex in a process of its own, which serves HTTPS on loopback
// with a CA of its own. It keeps its data in memory, so that a restart ends every refresh
// token and rotates the signing keys.
type Dex struct {
	*Process
	// Issuer is the issuer URL, and CAFile its CA.
	Issuer, CAFile string
	// SecretFile has the secret of HubClient.
	SecretFile string
	// Dir has the configuration, the CA and the certificate.
	Dir     string
	metrics string
	ports   chan int
}

// DexOptions configure a Dex.
type DexOptions struct {
	// IDTokens is the lifetime of ID tokens; 0 is ten minutes.
	IDTokens time.Duration
	// Silent logs every browser in as one person without a form, as a provider does for a browser that
	// has a session there. Nobody has a password.
	Silent bool
	// Grouped lets IDTokenIn decide who logs in, and with which groups. Nobody has a password.
	Grouped bool
}

// StartDex starts a Dex with its configuration in dir and waits until it serves.
func StartDex(dir string, o DexOptions) (*Dex, error) {
	if o.IDTokens == 0 {
		o.IDTokens = 10 * time.Minute
	}
	tls := filepath.Join(dir, "tls")
	if _, err := certs.Ensure(tls, []string{"localhost", "127.0.0.1"}, time.Now()); err != nil {
		return nil, err
	}
	d := &Dex{Dir: dir, CAFile: filepath.Join(tls, "ca.crt"), SecretFile: filepath.Join(dir, "client-secret"), ports: make(chan int, dexHubs)}
	if err := os.WriteFile(d.SecretFile, []byte(HubClientSecret), 0o600); err != nil {
		return nil, err
	}
	redirects := []string{}
	for range dexHubs {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		d.ports <- port
		redirects = append(redirects, fmt.Sprintf("https://127.0.0.1:%d/auth/callback", port))
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	metricsPort, err := FreePort()
	if err != nil {
		return nil, err
	}
	address, metrics := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", metricsPort)
	d.Issuer, d.metrics = "https://"+address+"/dex", "http://"+metrics+"/metrics"
	people := []map[string]string{}
	for _, name := range DexPeople() {
		people = append(people, map[string]string{"email": name + "@example.com", "username": name, "userID": "uid-" + name, "hash": dexHash})
	}
	settings := map[string]any{
		"issuer":    d.Issuer,
		"storage":   map[string]string{"type": "memory"},
		"web":       map[string]string{"https": address, "tlsCert": filepath.Join(tls, "tls.crt"), "tlsKey": filepath.Join(tls, "tls.key")},
		"telemetry": map[string]string{"http": metrics},
		"expiry":    map[string]string{"idTokens": o.IDTokens.String()},
		"oauth2":    map[string]any{"skipApprovalScreen": true, "passwordConnector": "local"},
		"staticClients": []map[string]any{
			{"id": HubClient, "name": "kedge-hub", "secret": HubClientSecret, "redirectURIs": redirects},
			{"id": OtherClient, "name": "kubelogin", "secret": otherClientSecret, "redirectURIs": []string{otherRedirect}},
		},
		"enablePasswordDB": true,
		"staticPasswords":  people,
	}
	if o.Silent || o.Grouped {
		connector := map[bool]string{true: "mockCallback", false: "authproxy"}[o.Silent]
		settings["oauth2"] = map[string]any{"skipApprovalScreen": true}
		settings["enablePasswordDB"], settings["staticPasswords"] = false, nil
		settings["connectors"] = []map[string]any{{"type": connector, "id": connector, "name": connector}}
	}
	config, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	// YAML is a superset of JSON.
	if err := os.WriteFile(d.config(), config, 0o600); err != nil {
		return nil, err
	}
	return d, d.Start()
}

// CertFile is the certificate that Dex serves, for StartChromium.
func (d *Dex) CertFile() string { return filepath.Join(d.Dir, "tls", "tls.crt") }

// KeyFile is the key of CertFile.
func (d *Dex) KeyFile() string { return filepath.Join(d.Dir, "tls", "tls.key") }

func (d *Dex) config() string { return filepath.Join(d.Dir, "dex.yaml") }

// Start starts a Dex that has ended, with the same people and another signing key, and waits
// until it serves.
func (d *Dex) Start() error {
	program, err := Bin("dex")
	if err != nil {
		return err
	}
	if d.Process, err = StartProcess(program, "serve", d.config()); err != nil {
		return err
	}
	client, err := NewClient(d.Issuer, d.CAFile)
	if err != nil {
		return err
	}
	defer client.HTTP.CloseIdleConnections()
	err = Wait(Long, func() error {
		select {
		case <-d.Ended():
			return nil
		default:
		}
		a, err := client.Try(Call{Method: http.MethodGet, Path: "/healthz"})
		if err == nil {
			err = Equal(http.StatusOK, a.Code)
		}
		return err
	})
	select {
	case <-d.Ended():
		return errors.New("Dex ended while it started:\n" + d.Output.String())
	default:
		return err
	}
}

// HubPort returns a port for a hub. Dex redirects to hubs on such ports alone.
func (d *Dex) HubPort(t testing.TB) int {
	t.Helper()
	select {
	case port := <-d.ports:
		return port
	default:
		require.Fail(t, "more hubs than Dex knows: raise dexHubs")
		return 0
	}
}

// WithDex lets people log in to a hub at Dex.
func WithDex(t testing.TB, d *Dex) func(*server.Options) {
	t.Helper()
	port := d.HubPort(t)
	return func(o *server.Options) {
		o.ListenAddress = fmt.Sprintf("127.0.0.1:%d", port)
		o.OIDC.IssuerURL, o.OIDC.CAFile = d.Issuer, d.CAFile
		o.OIDC.ClientID, o.OIDC.ClientSecretFile = HubClient, d.SecretFile
		o.OIDC.ExtraAudiences = []string{OtherClient}
	}
}

// IDToken fetches an ID token of a person for one of the clients, past every hub.
func (d *Dex) IDToken(t testing.TB, client, person string) string {
	t.Helper()
	return d.idToken(t, client, url.Values{
		"grant_type": {"password"}, "username": {person + "@example.com"}, "password": {DexPassword}, "scope": {"openid profile email"},
	})
}

// otherRedirect is where Dex sends the browsers of OtherClient. Nothing listens there.
const otherRedirect = "http://localhost:8000"

// IDTokenIn fetches an ID token of a person for OtherClient at a Dex that is Grouped. The person is in the groups. Dex
// leaves the claim out where there are none.
func (d *Dex) IDTokenIn(t testing.TB, person string, groups ...string) string {
	t.Helper()
	c, err := NewClient(d.Issuer, d.CAFile)
	require.NoError(t, err)
	defer c.HTTP.CloseIdleConnections()
	var code string
	c.HTTP.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if code = r.URL.Query().Get("code"); strings.HasPrefix(r.URL.String(), otherRedirect) {
			return http.ErrUseLastResponse
		}
		r.Header.Set("X-Remote-User", person)
		r.Header.Set("X-Remote-Group", strings.Join(groups, ","))
		return nil
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.Issuer+"/auth?"+url.Values{
		"client_id": {OtherClient}, "redirect_uri": {otherRedirect}, "response_type": {"code"}, "scope": {"openid profile email groups"},
	}.Encode(), http.NoBody)
	require.NoError(t, err)
	response, err := c.HTTP.Do(request)
	require.NoError(t, err)
	_ = response.Body.Close()
	require.NotEmpty(t, code, "Dex answered %d", response.StatusCode)
	return d.idToken(t, OtherClient, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {otherRedirect}})
}

// idToken fetches an ID token from the token endpoint.
func (d *Dex) idToken(t testing.TB, client string, form url.Values) string {
	t.Helper()
	secret := map[string]string{HubClient: HubClientSecret, OtherClient: otherClientSecret}[client]
	c, err := NewClient(d.Issuer, d.CAFile)
	require.NoError(t, err)
	defer c.HTTP.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.Issuer+"/token", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	request.SetBasicAuth(client, secret)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.HTTP.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var answer struct {
		IDToken string `json:"id_token"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.NotEmpty(t, answer.IDToken)
	return answer.IDToken
}

// IDClaims are claims of an ID token.
type IDClaims struct {
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
	Expiry  int64  `json:"exp"`
}

// Claims reads the claims of an ID token, unverified.
func Claims(t testing.TB, token string) (c IDClaims) {
	t.Helper()
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &c))
	return c
}

var dexTokenRequests = regexp.MustCompile(`(?m)^http_requests_total\{[^}]*handler="/token"[^}]*\} (\d+)$`)

// TokenRequests returns the number of requests that Dex's token endpoint has answered: for
// codes, refreshes and passwords.
func (d *Dex) TokenRequests(t testing.TB) int {
	t.Helper()
	a, err := (&Client{URL: d.metrics, HTTP: http.DefaultClient}).Try(Call{Method: http.MethodGet})
	require.NoError(t, err)
	total := 0
	for _, found := range dexTokenRequests.FindAllSubmatch(a.Raw, -1) {
		n, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		total += n
	}
	return total
}

// LogIn opens a URL that leads to Dex, logs a person in there and returns the page to which
// that leads. On a page of the hub that asks about a computer it presses Continue.
func (d *Dex) LogIn(t testing.TB, b *Browser, start, person string) *Page {
	t.Helper()
	form := b.Get(t, start)
	require.True(t, strings.HasPrefix(form.URL.String(), d.Issuer), "%s leads to %s: %d %s", start, form.URL.Path, form.Code, form.Body)
	return d.Enter(t, b, form, person)
}

// Enter is LogIn for a browser that shows Dex's form.
func (d *Dex) Enter(t testing.TB, b *Browser, form *Page, person string) *Page {
	t.Helper()
	return b.Continue(t, b.Submit(t, form, url.Values{"login": {person + "@example.com"}, "password": {DexPassword}}))
}
