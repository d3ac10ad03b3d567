package authorization

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

const portalCookie = "__Host-kedge"

// logins are the credentials of one person: of living sessions and of ended ones.
type logins struct {
	hub             *framework.Client
	person          string
	session, cookie string
	// expired is an ID token that has expired. endedSession and endedCookie are good for
	// longer, but not after their sessions.
	expired, endedSession, endedCookie string
}

// cookieOf logs a person in at the portal.
func cookieOf(t *testing.T, hub *framework.Client, person string) string {
	t.Helper()
	b := framework.NewBrowser(t, hub.CA, dex.CAFile)
	page := dex.LogIn(t, b, hub.URL+"/auth/login?return_to=/api/users/me", person)
	require.Equal(t, http.StatusOK, page.Code, page.Body)
	return b.Cookie(t, hub.URL, portalCookie).Value
}

func withCookie(cookie string) http.Header {
	return http.Header{"Cookie": {portalCookie + "=" + cookie}}
}

func bearing(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// newLogins logs a person in at the hub that tests share. Each test has another person, because logins are limited by person.
func newLogins(t *testing.T, person string) *logins {
	t.Helper()
	shared := kcp.SharedWithDex(t, dex, 1)[0]
	client := *shared.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	hub := &framework.Client{URL: shared.URL, CA: shared.CA, HTTP: &client}
	l := &logins{hub: hub, person: person}
	me := func(header http.Header) call {
		return call{Method: http.MethodGet, Path: "/api/users/me", Header: header}
	}
	refused := func(header http.Header) {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(me(header))
			if err != nil {
				return err
			}
			return framework.Equal(http.StatusUnauthorized, a.Code)
		})
	}
	l.expired = dex.LogInAt(t, hub, person).Access
	hub.Do(t, me(bearing(l.expired)), http.StatusOK)
	refused(bearing(l.expired))
	l.endedCookie = cookieOf(t, hub, person)
	hub.Do(t, me(withCookie(l.endedCookie)), http.StatusOK)
	out := withCookie(l.endedCookie)
	out.Set("Sec-Fetch-Site", "same-origin")
	hub.Do(t, call{Method: http.MethodPost, Path: "/auth/logout", Header: out}, http.StatusOK)
	refused(withCookie(l.endedCookie))
	l.cookie = cookieOf(t, hub, person)
	l.fresh(t)
	return l
}

// fresh makes a new session and a new ended one, because Dex's tokens expire soon.
func (l *logins) fresh(t *testing.T) {
	t.Helper()
	ended := dex.LogInAt(t, l.hub, l.person)
	l.hub.Do(t, call{Token: ended.Access, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	l.endedSession = ended.Access
	l.session = dex.LogInAt(t, l.hub, l.person).Access
	for _, item := range l.hub.Do(t, call{Token: ended.Access, Method: http.MethodGet, Path: "/api/users/me/sessions"}, http.StatusOK).JSON["items"].([]any) {
		if s := item.(map[string]any); s["current"] == true {
			id, _ := s["id"].(string)
			l.hub.Do(t, call{Token: l.session, Method: http.MethodDelete, Path: "/api/users/me/sessions/" + id}, http.StatusNoContent)
		}
	}
}

// concrete fills the parameters of a pattern with what nothing has, so that no request of the
// matrix changes anything.
func concrete(pattern string) string {
	path := strings.NewReplacer("{session}", matrixMissing, "{name}", "nobody", "{user}", "nobody").Replace(pattern)
	if path == "/clusters/*" {
		return "/clusters/abcdefgh/api/v1/namespaces"
	}
	for {
		from, to := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		if from < 0 {
			return path
		}
		path = path[:from] + matrixMissing + path[to+1:]
	}
}

// Every route that asks for a credential takes that of a living session and refuses one that has
// expired or ended. A cookie is none under /clusters, and writes nothing for other sites.
func TestMatrix_sessions(t *testing.T) {
	t.Parallel()
	l := newLogins(t, "alice")
	wanted := map[string]bool{}
	for _, r := range firstMatrixRows(matrixRow.authenticated) {
		for _, route := range r.routes(server.Routes()) {
			wanted[route.Method+" "+route.Pattern] = true
		}
	}
	tried := 0
	for _, route := range server.Routes() {
		if !wanted[route.Method+" "+route.Pattern] {
			continue
		}
		tried++
		answer := func(header http.Header) framework.Answer {
			t.Helper()
			// A body that is no JSON: what is authenticated goes no further.
			a, err := l.hub.Try(call{Method: route.Method, Path: concrete(route.Pattern), Header: header})
			require.NoError(t, err)
			require.Less(t, a.Code, 500, "%s %s: %s", route.Method, route.Pattern, a.Raw)
			return a
		}
		about := route.Method + " " + route.Pattern
		for name, header := range map[string]http.Header{
			"an expired token": bearing(l.expired), "a token of an ended session": bearing(l.endedSession), "a cookie of an ended session": withCookie(l.endedCookie),
			"a secret of the portal as a token": bearing(l.cookie), "an ended cookie beside a living session": {"Cookie": {portalCookie + "=" + l.endedCookie, portalCookie + "=" + l.cookie}},
		} {
			require.Equal(t, http.StatusUnauthorized, answer(header).Code, "%s with %s", about, name)
		}
		a := answer(bearing(l.session))
		if a.Code == http.StatusUnauthorized {
			// It has expired since.
			l.fresh(t)
			a = answer(bearing(l.session))
		}
		require.NotEqual(t, http.StatusUnauthorized, a.Code, "%s with a session: %s", about, a.Raw)
		own := withCookie(l.cookie)
		own.Set("Sec-Fetch-Site", "same-origin")
		foreign := withCookie(l.cookie)
		foreign.Set("Sec-Fetch-Site", "cross-site")
		if strings.HasPrefix(route.Pattern, "/clusters/") {
			require.Equal(t, http.StatusUnauthorized, answer(own).Code, "%s with a cookie", about)
			continue
		}
		require.Equal(t, a.Code, answer(own).Code, "%s with a cookie", about)
		if route.Method == http.MethodGet || route.Method == http.MethodHead {
			continue
		}
		a = answer(foreign)
		require.Equal(t, http.StatusForbidden, a.Code, "%s from another site", about)
		require.Contains(t, a.Text("message"), "another site")
	}
	require.Greater(t, tried, 60)
	l.hub.Do(t, call{Method: http.MethodGet, Path: "/api/users/me", Header: withCookie(l.cookie)}, http.StatusOK)
}

// loginRows are the routes of the login, with the answer to a request without parameters.
var loginRows = map[string]int{
	"GET /.well-known/oauth-authorization-server": http.StatusOK,
	"GET /auth/authorize":                         http.StatusBadRequest,
	"GET /auth/callback":                          http.StatusBadRequest,
	"GET /auth/device/login":                      http.StatusBadRequest,
	"GET /auth/device/verify":                     http.StatusOK,
	"GET /auth/login":                             http.StatusSeeOther,
	"GET /auth/style.css":                         http.StatusOK,
	"GET /auth/token-login":                       http.StatusOK,
	"POST /auth/authorize":                        http.StatusBadRequest,
	"POST /auth/device":                           http.StatusBadRequest,
	"POST /auth/device/verify":                    http.StatusBadRequest,
	"POST /auth/invitation":                       http.StatusBadRequest,
	"POST /auth/logout":                           http.StatusOK,
	"POST /auth/revoke":                           http.StatusBadRequest,
	"POST /auth/token":                            http.StatusBadRequest,
	"POST /auth/token-login":                      http.StatusBadRequest,
}

// The routes of the login are for callers without a credential. One that a caller has changes no
// answer.
func TestMatrix_logins(t *testing.T) {
	t.Parallel()
	routes := chi.NewRouter()
	(&login.Handler{}).Mount(routes)
	require.NoError(t, chi.Walk(routes, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		require.Contains(t, loginRows, method+" "+pattern)
		return nil
	}))
	l := newLogins(t, "bob")
	for route, want := range loginRows {
		method, path, _ := strings.Cut(route, " ")
		for name, header := range map[string]http.Header{
			"nobody": {}, "a session": bearing(l.session), "a cookie": withCookie(l.cookie), "an expired token": bearing(l.expired),
			"a token of an ended session": bearing(l.endedSession), "a cookie of an ended session": withCookie(l.endedCookie),
		} {
			if method == http.MethodPost {
				header.Set("Content-Type", "application/x-www-form-urlencoded")
				header.Set("Sec-Fetch-Site", "cross-site")
				if slices.Contains([]string{"/auth/authorize", "/auth/logout", "/auth/device/verify", "/auth/token-login"}, path) {
					a, err := l.hub.Try(call{Method: method, Path: path, Header: header})
					require.NoError(t, err)
					require.Equal(t, http.StatusForbidden, a.Code, "%s as %s from another site", route, name)
				}
				header.Set("Sec-Fetch-Site", "same-origin")
			}
			if path == "/auth/logout" && name == "a cookie" {
				// It is the last request with that cookie, below.
				continue
			}
			a, err := l.hub.Try(call{Method: method, Path: path, Header: header})
			require.NoError(t, err)
			require.Equal(t, want, a.Code, "%s as %s: %s", route, name, a.Raw)
			require.Equal(t, "no-store", a.Header.Get("Cache-Control"), route)
		}
	}
	out := withCookie(l.cookie)
	out.Set("Sec-Fetch-Site", "same-origin")
	l.hub.Do(t, call{Method: http.MethodPost, Path: "/auth/logout", Header: out}, http.StatusOK)
}
