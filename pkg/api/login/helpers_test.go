package login_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	hubURL      = "https://hub.example.com:9443"
	providerURL = "https://idp.example.com/authorize"
	loopback    = "http://127.0.0.1:41234/callback"
	verifier    = "v-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"

	loginCookie   = "__Host-kedge-login"
	sessionCookie = "__Host-kedge"
	knownCookie   = "__Host-kedge-known"
)

var now = time.Date(2026, time.March, 2, 8, 30, 0, 0, time.UTC)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// hub is a mounted Handler with everything behind it.
type hub struct {
	http     http.Handler
	clock    *clocktesting.FakePassiveClock
	provider *provider
	sessions *sessions
	people   map[string]*v1alpha1.User
	events   []login.Event
	// unaudited is the error of the audit log.
	unaudited error
	// unchanged is the number of events that change nothing.
	unchanged int
	metrics   *prometheus.Registry
	keyring   *session.Keyring
	kcp       error
	limits    limits
	// kept are the people whose grant was stored before a confirmation.
	kept []string
	// signUpFails is what SignUp fails with, and invited has what the sign-ups presented.
	signUpFails error
	invited     []httpmw.PresentedInvitation
}

func newHub(t testing.TB) *hub {
	t.Helper()
	p := &provider{begun: map[string]auth.LoginRequest{}}
	h := newHubAt(t, p)
	h.provider = p
	return h
}

// newHubAt returns a hub with an identity provider.
func newHubAt(t testing.TB, idp login.Provider) *hub {
	t.Helper()
	return newHubWith(t, idp, nil)
}

// newHubWith returns a hub with an identity provider and static tokens, either of which may be
// nil.
func newHubWith(t testing.TB, idp login.Provider, tokens func(context.Context, string) (*auth.Identity, bool, error)) *hub {
	t.Helper()
	return newHubThat(t, idp, tokens, func(*login.Handler) {})
}

// newHubThat is newHubWith with a change of the handler.
func newHubThat(t testing.TB, idp login.Provider, tokens func(context.Context, string) (*auth.Identity, bool, error),
	change func(*login.Handler),
) *hub {
	t.Helper()
	keyring, err := session.NewKeyring([][]byte{[]byte(strings.Repeat("k", session.KeySize))}, rand.Reader)
	require.NoError(t, err)
	h := &hub{
		clock:    clocktesting.NewFakePassiveClock(now),
		sessions: newSessions(), people: map[string]*v1alpha1.User{}, keyring: keyring,
		metrics: prometheus.NewRegistry(),
	}
	counted, err := login.NewMetrics(h.metrics)
	require.NoError(t, err)
	for _, name := range []string{"alice", "bob", "pending", "rejected", "deleted"} {
		u := &v1alpha1.User{}
		u.Name, u.Spec.DisplayName, u.Spec.RBACIdentity = name, strings.ToUpper(name[:1])+name[1:], "kedge:"+name
		h.people[name] = u
	}
	h.people["pending"].Spec.Registration = v1alpha1.RegistrationPending
	h.people["rejected"].Spec.Registration = v1alpha1.RegistrationRejected
	deleted := metav1.NewTime(now)
	h.people["deleted"].Status.DeletionRequestedAt = &deleted
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	r.NotFound(httpapi.NotFound)
	r.MethodNotAllowed(httpapi.MethodNotAllowed)
	handler := &login.Handler{
		Provider: idp, StaticTokens: tokens, Sessions: h.sessions, Devices: h.sessions, Keyring: ring{keyring, h.sessions},
		KeepGrant: func(_ context.Context, u *v1alpha1.User, g *auth.Grant) error {
			require.NotNil(t, g)
			h.kept = append(h.kept, u.Name)
			return h.sessions.fails
		},
		Metrics:   counted,
		SignUp:    h.signUp,
		SessionOf: h.sessions.sessionOf,
		Audit: func(_ context.Context, e audit.Event) error {
			if h.unaudited == nil {
				of := login.Event{Stage: e.Stage, User: e.Actor.User, Issuer: e.Actor.Issuer, Action: e.Action, Code: e.Code}
				if e.Facts != nil {
					of.Session, of.Generation = e.Facts.Session, e.Facts.Generation
				}
				if h.events = append(h.events, of); e.Unchanged {
					h.unchanged++
				}
			}
			return h.unaudited
		},
		Available: func(context.Context) error { return h.kcp },
		Limits:    &h.limits,
		NewSecret: func() string { return rand.Text() + rand.Text() },
		Clock:     h.clock, ExternalURL: hubURL, Invitations: httpmw.InvitationCookies{Keys: keyring, Clock: h.clock},
	}
	change(handler)
	handler.Mount(r)
	h.http = apitest.AsDocumented(r)
	return h
}

// ring is the keyring of a hub whose secrets, cookies and codes are those of sessions.
type ring struct {
	*session.Keyring
	sessions *sessions
}

// Genuine implements login.Keyring.
func (r ring) Genuine(presented string) (string, bool) { return presented, r.sessions.made[presented] }

// limits record what was taken, and refuse what has an error.
type limits struct {
	strangers, exchanges, devices int
	sessions, persons             []string
	fail                          struct{ stranger, session, person, exchange, device error }
}

func (l *limits) Stranger(context.Context) error { l.strangers++; return l.fail.stranger }

func (l *limits) Session(key string) error {
	l.sessions = append(l.sessions, key)
	return l.fail.session
}

func (l *limits) Person(user string) error { l.persons = append(l.persons, user); return l.fail.person }

func (l *limits) Exchange(context.Context) error { l.exchanges++; return l.fail.exchange }

func (l *limits) Device(context.Context) error { l.devices++; return l.fail.device }

func (h *hub) signUp(ctx context.Context, id *auth.Identity) (*v1alpha1.User, error) {
	if p, ok := httpmw.InvitationFrom(ctx); ok {
		h.invited = append(h.invited, p)
	}
	if h.signUpFails != nil {
		return nil, h.signUpFails
	}
	return h.people[id.Subject], nil
}

// provider is an identity provider whose codes are "{subject}".
type provider struct {
	begun map[string]auth.LoginRequest
	fails error
}

func (p *provider) AuthCodeURL(_ context.Context, l auth.LoginRequest) (string, error) {
	if p.fails != nil {
		return "", p.fails
	}
	p.begun[l.State] = l
	return providerURL + "?" + url.Values{"state": {l.State}, "redirect_uri": {l.RedirectURI}}.Encode(), nil
}

func (p *provider) Exchange(_ context.Context, code string, l auth.LoginRequest) (*auth.Grant, error) {
	if p.fails != nil {
		return nil, p.fails
	}
	if p.begun[l.State] != l {
		return nil, auth.ErrGrantRefused
	}
	delete(p.begun, l.State)
	return &auth.Grant{
		IDToken: "id-token-of-" + code, RefreshToken: "refresh-token-of-" + code,
		Identity: &auth.Identity{Kind: auth.Person, Issuer: "https://idp.example.com", Subject: code, Username: "kedge:" + code},
	}, nil
}

// browser sends requests and keeps cookies, as a person's browser does.
type browser struct {
	t       testing.TB
	hub     *hub
	cookies map[string]string
	// header is sent with every request.
	header http.Header
}

func (h *hub) browser(t testing.TB) *browser {
	return &browser{t: t, hub: h, cookies: map[string]string{}, header: http.Header{}}
}

// answer is an answer with its body read.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (b *browser) do(method, target, contentType, body string) answer {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, hubURL+target, strings.NewReader(body))
	for name, values := range b.header {
		r.Header[name] = values
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.hub.http.ServeHTTP(w, r)
	response := w.Result()
	defer func() { _ = response.Body.Close() }()
	for _, c := range response.Cookies() {
		require.True(b.t, c.HttpOnly && c.Secure && c.SameSite == http.SameSiteLaxMode && c.Path == "/" && c.Domain == "", c.Name)
		require.LessOrEqual(b.t, len(c.Name)+len(c.Value), 4096, "browsers drop larger cookies")
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			require.Positive(b.t, c.MaxAge)
			b.cookies[c.Name] = c.Value
		}
	}
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	if response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusMethodNotAllowed {
		require.Equal(b.t, "no-store", response.Header.Get("Cache-Control"), "%s: %s", target, raw)
		require.Contains(b.t, response.Header.Get("Content-Security-Policy"), "default-src 'none'", target)
	}
	return answer{response.StatusCode, response.Header, string(raw)}
}

func (b *browser) get(target string, query url.Values) answer {
	b.t.Helper()
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return b.do(http.MethodGet, target, "", "")
}

func (b *browser) post(target string, form url.Values) answer {
	b.t.Helper()
	return b.do(http.MethodPost, target, "application/x-www-form-urlencoded", form.Encode())
}

// location is where an answer redirects to.
func (a answer) location(t testing.TB) *url.URL {
	t.Helper()
	require.Equal(t, http.StatusSeeOther, a.code, a.body)
	require.Empty(t, a.body)
	u, err := url.Parse(a.header.Get("Location"))
	require.NoError(t, err)
	return u
}

// page requires a page with the status.
func (a answer) page(t testing.TB, code int) string {
	t.Helper()
	require.Equal(t, code, a.code, a.body)
	require.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
	require.Empty(t, a.header.Get("Location"))
	require.Contains(t, a.body, `<html lang="en">`)
	require.NotContains(t, a.body, "<script")
	require.NotContains(t, a.body, "style=")
	return a.body
}

// oauthError requires an error in OAuth's form.
func (a answer) oauthError(t testing.TB, status int, code string) string {
	t.Helper()
	require.Equal(t, status, a.code, a.body)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var got map[string]string
	require.NoError(t, json.Unmarshal([]byte(a.body), &got), a.body)
	require.Equal(t, code, got["error"], a.body)
	require.NotEmpty(t, got["error_description"])
	return got["error_description"]
}

// authorization is a valid request of the command line.
func authorization() url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {"kedge-cli"}, "redirect_uri": {loopback}, "state": {"s t&a=te"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "description": {"laptop"},
	}
}

// callback lets a person log in at the provider and returns the answer of the callback.
func (b *browser) callback(begun answer, person string) answer {
	b.t.Helper()
	to := begun.location(b.t)
	require.Equal(b.t, "idp.example.com", to.Host)
	return b.get("/auth/callback", url.Values{"state": {to.Query().Get("state")}, "code": {person}})
}

var (
	hidden   = regexp.MustCompile(`name="login" value="([^"]+)"`)
	computer = regexp.MustCompile(`action="/auth/authorize"`)
)

// formOf is the form of a page that asks for a decision.
func (a answer) formOf(t testing.TB, decision string) url.Values {
	t.Helper()
	field := hidden.FindStringSubmatch(a.page(t, http.StatusOK))
	require.Len(t, field, 2, a.body)
	require.NotContains(t, a.body, "id-token-of-")
	require.NotContains(t, a.body, "code-")
	return url.Values{"login": {field[1]}, "decision": {decision}}
}

// logIn is callback. It presses Continue on the page that asks about a computer.
func (b *browser) logIn(begun answer, person string) answer {
	b.t.Helper()
	return b.onward(b.callback(begun, person))
}

// onward presses Continue if a page asks about a computer.
func (b *browser) onward(a answer) answer {
	b.t.Helper()
	if !computer.MatchString(a.body) {
		return a
	}
	return b.post("/auth/authorize", a.formOf(b.t, "continue"))
}

// authorized returns a code for the command line of a person.
func (b *browser) authorized(person string) string {
	b.t.Helper()
	to := b.logIn(b.get("/auth/authorize", authorization()), person).location(b.t)
	require.Equal(b.t, loopback, "http://"+to.Host+to.Path)
	require.Equal(b.t, "s t&a=te", to.Query().Get("state"))
	require.Equal(b.t, hubURL, to.Query().Get("iss"))
	return to.Query().Get("code")
}

// redemption is the form that redeems a code.
func redemption(code string) url.Values {
	return url.Values{
		"client_id": {"kedge-cli"}, "grant_type": {"authorization_code"}, "code": {code},
		"code_verifier": {verifier}, "redirect_uri": {loopback},
	}
}

func unavailable(message string) error {
	e := errs.New(errs.Unavailable, message)
	e.RetryAfter = 7 * time.Second
	return e
}

// both are the intent and the outcome of an event.
func both(e login.Event) []login.Event {
	intent, outcome := e, e
	intent.Stage, intent.Code, outcome.Stage = audit.StageIntent, 0, audit.StageOutcome
	return []login.Event{intent, outcome}
}
