package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// botTokens verifies the tokens that begin with "bot".
type botTokens struct{ issued, expires time.Time }

func (b botTokens) Authenticate(_ context.Context, token string) (*auth.Identity, bool, error) {
	switch token {
	case "bot.down":
		return nil, false, errs.New(errs.Unavailable, "no keys")
	case "bot.forged":
		return nil, false, errors.New("no key has signed it")
	}
	return &auth.Identity{
		Kind: auth.Bot, Username: "system:serviceaccount:default:ci", IssuedAt: b.issued, ExpiresAt: b.expires,
		Account: &auth.ServiceAccount{Cluster: "cluster", Namespace: "default", Name: "ci", UID: "account", SecretUID: "secret"},
	}, true, nil
}

// botScene is a Bot that lists its token or does not.
type botScene struct {
	clock  *clocktesting.FakePassiveClock
	tokens botTokens
	until  time.Time
	listed bool
	awaits int
	// arrives puts the token into the list while it is waited for.
	arrives bool
	// events are what the audit log has.
	events []audit.Event
}

func newBotScene() *botScene {
	now := time.Unix(1_000_000, 0)
	return &botScene{
		clock: clocktesting.NewFakePassiveClock(now), tokens: botTokens{now.Add(-time.Hour), now.Add(time.Hour)},
		until: now.Add(time.Hour), listed: true,
	}
}

func (s *botScene) check(token tenancy.BotToken, _ time.Time) (tenancy.ScopedBot, time.Time, error) {
	if !s.listed || token != (tenancy.BotToken{Cluster: "cluster", Namespace: "default", Name: "ci", Account: "account", Secret: "secret"}) {
		return tenancy.ScopedBot{}, time.Time{}, tenancy.NotABot()
	}
	b := tenancy.NewBot("ci", "w", "CI", v1alpha1.RoleMember, "alice", "")
	b.Status.ServiceAccountUID = "account"
	b.Spec.Tokens = []v1alpha1.BotToken{{ID: "other", SecretUID: "before"}, {ID: "id", SecretUID: "secret"}}
	return tenancy.ScopedBot{Bot: b, Org: tenancy.Org{Organization: tenancy.NewOrganization("o", "Acme", "alice")}, Workspace: tenancy.Workspace{UUID: "w"}}, s.until, nil
}

// people is the Authenticator of people, who are too many.
type people struct{}

func (people) Authenticate(context.Context, string) (*auth.Identity, bool, error) {
	return nil, false, errs.New(errs.TooManyRequests, "later")
}

// ask sends a request and returns the code and the caller that the handler got.
func (s *botScene) ask(may func(*http.Request, tenancy.ScopedBot) bool, method, path, token string) (code int, caller *httpmw.Caller) {
	h := httpmw.Authenticate(httpmw.Authentication{Tokens: people{}, Bots: &httpmw.BotAuthentication{
		Names: func(token string) bool { return strings.HasPrefix(token, "bot.") }, Tokens: s.tokens, Check: s.check,
		Await: func(_ context.Context, cluster string, cond func() bool) error {
			s.awaits++
			s.listed = s.listed || s.arrives && cluster == "cluster"
			if cond() {
				return nil
			}
			return context.DeadlineExceeded
		},
		May: may, Clock: s.clock,
	}})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { caller = httpmw.CallerOf(r) }))
	h = audited(func(e audit.Event) error { s.events = append(s.events, e); return nil })(h)
	r := httptest.NewRequestWithContext(context.Background(), method, path, http.NoBody)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, caller
}

func TestAuthenticateBots_leavesPeopleToTheirTokens(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]int{
		"": http.StatusUnauthorized, "a b": http.StatusUnauthorized, "alice": http.StatusTooManyRequests, "e30.e30.e30": http.StatusTooManyRequests,
	} {
		code, _ := newBotScene().ask(nil, http.MethodGet, "/", token)
		require.Equal(t, want, code, token)
	}
}

func TestAuthenticateBots_letsInWhatABotLists(t *testing.T) {
	t.Parallel()
	s := newBotScene()
	code, caller := s.ask(nil, http.MethodPost, "/clusters/cluster", "bot.good")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "bot:account", caller.Key())
	require.Equal(t, "system:serviceaccount:default:ci", caller.Username())
	require.Nil(t, caller.User)
	require.Len(t, s.events, 1)
	require.Equal(t, audit.Actor{Kind: audit.ActorBot, Bot: "ci", Token: "id"}, s.events[0].Actor)
	require.Equal(t, s.until, caller.ExpiresAt())
	require.NoError(t, caller.Valid())
	s.listed = false
	require.True(t, errs.Is(caller.Valid(), errs.Unauthenticated), "a revocation ends what is open")
	s.listed = true
	s.clock.SetTime(s.tokens.expires)
	require.True(t, errs.Is(caller.Valid(), errs.Unauthenticated))

	s = newBotScene()
	s.tokens.expires = s.clock.Now().Add(time.Minute)
	_, caller = s.ask(nil, http.MethodGet, "/", "bot.good")
	require.Equal(t, s.tokens.expires, caller.ExpiresAt(), "the earlier of the two")
}

func TestAuthenticateBots_refuseWhatNoBotLists(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]int{"bot.good": http.StatusUnauthorized, "bot.forged": http.StatusUnauthorized, "bot.down": http.StatusServiceUnavailable} {
		s := newBotScene()
		s.listed = false
		code, caller := s.ask(nil, http.MethodGet, "/", token)
		require.Equal(t, want, code, token)
		require.Nil(t, caller)
		require.Zero(t, s.awaits, "an old token is not waited for")
	}
	s := newBotScene()
	s.tokens.expires = s.clock.Now()
	code, _ := s.ask(nil, http.MethodGet, "/", "bot.good")
	require.Equal(t, http.StatusUnauthorized, code)
}

// Another replica has issued the token a moment ago.
func TestAuthenticateBots_waitForAFreshToken(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		s := newBotScene()
		s.listed, s.arrives, s.tokens.issued = false, arrives, s.clock.Now()
		code, _ := s.ask(nil, http.MethodGet, "/", "bot.good")
		require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[arrives], code)
		require.Equal(t, 1, s.awaits)
	}
}

const entryUUID = "aaaaaaaa-1111-5111-8111-000000000001"

func TestBotMay_letsAdminBotsEnable(t *testing.T) {
	t.Parallel()
	const providers = "/api/orgs/o/workspaces/w/providers/"
	for request, want := range map[string]bool{
		"GET " + providers + entryUUID:                                     true,
		"HEAD " + providers + entryUUID:                                    true,
		"POST " + providers + entryUUID + "/enable":                        true,
		"DELETE " + providers + entryUUID + "/enable":                      true,
		"GET " + providers + entryUUID + "/enable":                         false,
		"POST " + providers + entryUUID:                                    false,
		"PUT " + providers + entryUUID + "/enable":                         false,
		"POST " + providers + "../members/enable":                          false,
		"POST " + providers + entryUUID + "/x/enable":                      false,
		"POST /api/orgs/o/workspaces/x/providers/" + entryUUID + "/enable": false,
		"POST /api/orgs/x/workspaces/w/providers/" + entryUUID + "/enable": false,
		"POST /api/orgs/o/catalog":                                         false,
		"GET /api/providers":                                               true,
		"DELETE /api/providers":                                            false,
	} {
		method, path, _ := strings.Cut(request, " ")
		p := tenancy.ScopedBot{Bot: &v1alpha1.Bot{}, Org: tenancy.Org{Organization: &v1alpha1.Organization{}}}
		p.Org.Name, p.Workspace.UUID, p.Bot.Spec.Role = "o", "w", v1alpha1.RoleAdmin
		r := httptest.NewRequest(method, "https://hub.example.com/", http.NoBody)
		r.URL.Path = path
		require.Equal(t, want, httpmw.BotMay(r, p), request)
	}
}

func TestBotMay_isWhatBotsAreFor(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]int{
		"GET /api/users/me":                             http.StatusOK,
		"HEAD /api/users/me":                            http.StatusOK,
		"GET /api/orgs/o/workspaces/w/kubeconfig":       http.StatusOK,
		"GET /api/orgs/o/workspaces/x/kubeconfig":       http.StatusForbidden,
		"GET /api/orgs/x/workspaces/w/kubeconfig":       http.StatusForbidden,
		"POST /api/orgs/o/workspaces/w/kubeconfig":      http.StatusForbidden,
		"PATCH /api/users/me":                           http.StatusForbidden,
		"GET /api/users/me/memberships":                 http.StatusForbidden,
		"GET /api/orgs":                                 http.StatusForbidden,
		"POST /api/orgs":                                http.StatusForbidden,
		"POST /api/credentials":                         http.StatusForbidden,
		"GET /api/orgs/o/workspaces/w":                  http.StatusForbidden,
		"GET /api/orgs/o/workspaces/w/serviceaccounts":  http.StatusForbidden,
		"POST /api/orgs/o/workspaces/w/serviceaccounts": http.StatusForbidden,
		"GET /api/users/%6De":                           http.StatusForbidden,
		"GET /api/orgs/o/workspaces/w%2Fkubeconfig":     http.StatusForbidden,
		"GET /api/providers":                            http.StatusOK,
		"POST /api/providers":                           http.StatusForbidden,
		// This bot is a member.
		"GET /api/orgs/o/workspaces/w/providers/" + entryUUID:              http.StatusForbidden,
		"POST /api/orgs/o/workspaces/w/providers/" + entryUUID + "/enable": http.StatusForbidden,
	} {
		method, path, _ := strings.Cut(request, " ")
		code, _ := newBotScene().ask(httpmw.BotMay, method, path, "bot.good")
		require.Equal(t, want, code, request)
	}
}

// A bot replaces the token that it presents, and nothing else about tokens.
func TestBotMay_rotateItsOwnTokenOnly(t *testing.T) {
	t.Parallel()
	const tokens = "/api/orgs/o/workspaces/w/serviceaccounts/ci/tokens"
	for request, want := range map[string]bool{
		"POST " + tokens + "/id/rotate":    true,
		"GET " + tokens + "/id/rotate":     false,
		"POST " + tokens + "/other/rotate": false,
		"POST " + tokens:                   false,
		"GET " + tokens:                    false,
		"DELETE " + tokens + "/id":         false,
		"POST " + tokens + "//rotate":      false,
		"POST " + tokens + "/%69d/rotate":  false,
		"POST /api/orgs/o/workspaces/w/serviceaccounts/other/tokens/id/rotate": false,
		"POST /api/orgs/o/workspaces/v/serviceaccounts/ci/tokens/id/rotate":    false,
	} {
		method, path, _ := strings.Cut(request, " ")
		place, _, err := newBotScene().check(tenancy.BotToken{Cluster: "cluster", Namespace: "default", Name: "ci", Account: "account", Secret: "secret"}, time.Time{})
		require.NoError(t, err)
		place.Token = "id"
		place.Bot.Spec.Role = v1alpha1.RoleAdmin
		require.Equal(t, want, httpmw.BotMay(httptest.NewRequestWithContext(context.Background(), method, path, http.NoBody), place), request)
	}
}
