package httpmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// newPortalLogin is a person with a cookie. The cookie of a Session is "made-" and its name.
func newPortalLogin() *login {
	l := newLogin()
	l.session.Spec.Client, l.session.Spec.Groups = v1alpha1.SessionPortal, []string{"kedge:dev"}
	l.session.Spec.Tokens = []v1alpha1.SessionToken{{Hash: "login", ExpiresAt: metav1.NewTime(noon.Add(10 * time.Minute))}}
	l.cookies = &httpmw.Cookies{
		Open:        func(value string) (string, bool) { return strings.CutPrefix(value, "made-") },
		CrossOrigin: http.NewCrossOriginProtection(),
		Await: func(ctx context.Context, _ []tenancy.Ref, cond func() bool) error {
			if cond() {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		},
	}
	return l
}

const goodCookie = httpmw.SessionCookie + "=made-s1"

// ask sends a request; header are pairs.
func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://hub.example.com"+path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestCookie_isAPersonsCredential(t *testing.T) {
	t.Parallel()
	l := newPortalLogin()
	var got *httpmw.Caller
	h := l.routes(func(c *httpmw.Caller) { got = c })
	require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing", "Cookie", "other=1; "+goodCookie).Code)
	require.Equal(t, "alice", got.User.Name)
	require.Equal(t, "s1", got.Session)
	require.True(t, got.ByCookie())
	require.Equal(t, l.session.Spec.ExpiresAt.Time, got.ExpiresAt())
	require.Equal(t, auth.Identity{
		Kind: auth.Person, Issuer: "https://idp", Subject: "a1", Username: "kedge:alice", Groups: []string{"kedge:dev"},
		ExpiresAt: l.session.Spec.ExpiresAt.Time,
	}, *got.Identity)
	require.False(t, got.PlatformAdmin)
	l.session.Spec.Groups = []string{"ops"}
	require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing", "Cookie", goodCookie).Code)
	require.True(t, got.PlatformAdmin)
	l.clock.SetTime(noon.Add(10 * time.Minute))
	require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing", "Cookie", goodCookie).Code)
	require.False(t, got.PlatformAdmin, "a group that the issuer may have withdrawn since counts no longer than an ID token")
}

func TestCookie_isRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cookies []string
		code    int
	}{
		"good: the positive control":  {[]string{goodCookie}, http.StatusOK},
		"not made by the hub":         {[]string{httpmw.SessionCookie + "=s1"}, http.StatusUnauthorized},
		"empty":                       {[]string{httpmw.SessionCookie + "="}, http.StatusUnauthorized},
		"of an unknown session":       {[]string{httpmw.SessionCookie + "=made-s2"}, http.StatusUnauthorized},
		"without the prefix":          {[]string{"kedge=made-s1"}, http.StatusUnauthorized},
		"in lower case":               {[]string{"__host-kedge=made-s1"}, http.StatusUnauthorized},
		"two of them":                 {[]string{goodCookie + "; " + httpmw.SessionCookie + "=made-s2"}, http.StatusUnauthorized},
		"the same twice":              {[]string{goodCookie + "; " + goodCookie}, http.StatusUnauthorized},
		"two header lines":            {[]string{goodCookie, httpmw.SessionCookie + "=x"}, http.StatusUnauthorized},
		"another cookie is no matter": {[]string{goodCookie + "; __Host-kedge-login=x"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var header []string
			for _, line := range c.cookies {
				header = append(header, "Cookie", line)
			}
			w := ask(newPortalLogin().routes(func(*httpmw.Caller) {}), http.MethodGet, "/thing", header...)
			require.Equal(t, c.code, w.Code, w.Body)
			require.NotContains(t, w.Body.String(), "made-")
		})
	}
}

func TestCookie_isNoneWhereCookiesDoNotCount(t *testing.T) {
	t.Parallel()
	l := newPortalLogin()
	require.Equal(t, http.StatusOK, ask(l.routes(func(*httpmw.Caller) {}), http.MethodGet, "/thing", "Cookie", goodCookie).Code)
	l.cookies = nil
	require.Equal(t, http.StatusUnauthorized, ask(l.routes(func(*httpmw.Caller) {}), http.MethodGet, "/thing", "Cookie", goodCookie).Code)
}

func TestCookie_yieldsToABearer(t *testing.T) {
	t.Parallel()
	l := newPortalLogin()
	var got *httpmw.Caller
	h := l.routes(func(c *httpmw.Caller) { got = c })
	require.Equal(t, http.StatusOK, ask(h, http.MethodPost, "/thing", "Cookie", goodCookie, "Authorization", "Bearer token", "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, "hash", got.Identity.Credential)
	for _, bad := range []string{"Bearer bad", "Basic eA==", ""} {
		require.Equal(t, http.StatusUnauthorized, ask(h, http.MethodGet, "/thing", "Cookie", goodCookie, "Authorization", bad).Code, bad)
	}
}

// A page of another site sends requests with the cookie of the person who looks at it.
func TestCookie_otherSitesCauseNoWrite(t *testing.T) {
	t.Parallel()
	served := 0
	h := newPortalLogin().routes(func(*httpmw.Caller) { served++ })
	for name, c := range map[string]struct {
		header []string
		passes bool
	}{
		"same origin":                {[]string{"Sec-Fetch-Site", "same-origin"}, true},
		"typed by the person":        {[]string{"Sec-Fetch-Site", "none"}, true},
		"an old browser":             {[]string{"Origin", "https://hub.example.com"}, true},
		"no browser":                 {nil, true},
		"cross-site":                 {[]string{"Sec-Fetch-Site", "cross-site"}, false},
		"a sibling domain":           {[]string{"Sec-Fetch-Site", "same-site"}, false},
		"an old browser, other site": {[]string{"Origin", "https://evil.example.com"}, false},
		"a sandboxed frame":          {[]string{"Origin", "null"}, false},
	} {
		header := append([]string{"Cookie", goodCookie}, c.header...)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			served = 0
			w := ask(h, method, "/thing", header...)
			if c.passes {
				require.Equal(t, http.StatusOK, w.Code, "%s %s", method, name)
				require.Equal(t, 1, served)
				continue
			}
			require.Equal(t, http.StatusForbidden, w.Code, "%s %s, without a body", method, name)
			require.Contains(t, w.Body.String(), "another site")
			require.Zero(t, served)
		}
		require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing", header...).Code, name)
	}
}

func TestCookie_endsWithItsSession(t *testing.T) {
	t.Parallel()
	for name, way := range ended() {
		if strings.HasPrefix(name, "the token") || strings.HasPrefix(name, "the username") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newPortalLogin()
			h := l.routes(func(c *httpmw.Caller) {
				way.change(l)
				require.Error(t, c.Valid())
			})
			require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/thing", "Cookie", goodCookie).Code, "the positive control")
			w := ask(h, http.MethodGet, "/thing", "Cookie", goodCookie)
			require.Equal(t, codes(way.code), w.Code, w.Body)
		})
	}
}

func TestCookie_ofTheCommandLineIsNone(t *testing.T) {
	t.Parallel()
	l := newPortalLogin()
	l.session.Spec.Client = v1alpha1.SessionCLI
	require.Equal(t, http.StatusUnauthorized, ask(l.routes(func(*httpmw.Caller) {}), http.MethodGet, "/thing", "Cookie", goodCookie).Code)
}

// People whose registration waits, or was rejected, are told so.
func TestCookie_registrationHolds(t *testing.T) {
	t.Parallel()
	l := newPortalLogin()
	h := l.routes(func(*httpmw.Caller) {})
	l.user.Spec.Registration = v1alpha1.RegistrationPending
	w := ask(h, http.MethodGet, "/thing", "Cookie", goodCookie)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "approval")
	require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/api/users/me", "Cookie", goodCookie).Code)
	l.signUp = func(_ context.Context, _ *auth.Identity, vouched bool) (*v1alpha1.User, error) {
		if !vouched {
			return nil, errs.New(errs.Forbidden, "closed")
		}
		l.user.Spec.Registration = v1alpha1.RegistrationApproved
		return l.user.DeepCopy(), nil
	}
	l.session.Spec.Groups = []string{"ops"}
	require.Equal(t, http.StatusOK, ask(l.routes(func(*httpmw.Caller) {}), http.MethodGet, "/thing", "Cookie", goodCookie).Code, "a platform admin needs no approval")
	l.user.Spec.Registration = v1alpha1.RegistrationRejected
	w = ask(h, http.MethodGet, "/thing", "Cookie", goodCookie)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "rejected")
}

// named returns the name of a Session that was created at a time.
func named(at time.Time) string {
	id := uuid.MustParse("00000000-0000-7000-8000-000000000000")
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		id[i] = byte(ms)
	}
	return id.String()
}

// Another replica has created the Session, and the caches do not have it yet.
func TestCookie_ofANewSessionIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age         time.Duration
		comes       bool
		code, waits int
	}{
		"it comes":            {5 * time.Second, true, http.StatusOK, 2},
		"it does not come":    {5 * time.Second, false, http.StatusUnauthorized, 1},
		"it is old":           {time.Minute, true, http.StatusUnauthorized, 0},
		"a clock is in front": {-5 * time.Second, true, http.StatusOK, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, waits := newPortalLogin(), 0
			made := named(noon.Add(-c.age))
			l.session.Name = ""
			l.cookies.Await = func(ctx context.Context, _ []tenancy.Ref, cond func() bool) error {
				waits++
				if c.comes {
					l.session.Name = made
				}
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 3*time.Second {
					t.Error("the wait is not limited")
				}
				if cond() {
					return nil
				}
				return context.DeadlineExceeded
			}
			w := ask(l.routes(func(*httpmw.Caller) {}), http.MethodGet, "/thing", "Cookie", httpmw.SessionCookie+"=made-"+made)
			require.Equal(t, c.code, w.Code, w.Body)
			require.Equal(t, c.waits, waits)
		})
	}
}

// A session that began with a static token lives as long as the token file has the token.
func TestCookie_endsWithItsStaticToken(t *testing.T) {
	t.Parallel()
	alice := &auth.Identity{Issuer: auth.StaticIssuer, Subject: "a1", Groups: []string{"ops"}}
	for name, c := range map[string]struct {
		change func(*login)
		code   int
	}{
		"in the file: the positive control": {func(*login) {}, http.StatusOK},
		"not in the file any more":          {func(l *login) { l.cookies.Static = func(string) (*auth.Identity, bool) { return nil, false } }, http.StatusUnauthorized},
		"of another person": {func(l *login) {
			l.cookies.Static = func(string) (*auth.Identity, bool) { return &auth.Identity{Subject: "b1"}, true }
		}, http.StatusUnauthorized},
		"no tokens at all":   {func(l *login) { l.cookies.Static = nil }, http.StatusUnauthorized},
		"without credential": {func(l *login) { l.session.Spec.Tokens = nil }, http.StatusUnauthorized},
	} {
		l := newPortalLogin()
		l.user.Spec.Issuer, l.session.Spec.Tokens[0] = auth.StaticIssuer, v1alpha1.SessionToken{Hash: "of a1", ExpiresAt: metav1.NewTime(noon.Add(-time.Hour))}
		l.cookies.Static = func(credential string) (*auth.Identity, bool) { return alice, credential == "of a1" }
		c.change(l)
		var got *httpmw.Caller
		w := ask(l.routes(func(c *httpmw.Caller) { got = c }), http.MethodGet, "/thing", "Cookie", goodCookie)
		require.Equal(t, c.code, w.Code, name)
		if c.code == http.StatusOK {
			require.True(t, got.PlatformAdmin, "groups are those of the file")
			require.Equal(t, "of a1", got.Identity.Credential)
		}
	}
}
