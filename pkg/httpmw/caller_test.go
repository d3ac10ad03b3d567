package httpmw_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// login is a person with one token of one Session. All of it can change.
type login struct {
	user v1alpha1.User
	// first is another User with the same username in kcp.
	first   *v1alpha1.User
	session v1alpha1.Session
	token   auth.Identity
	failure error
	clock   *clocktesting.FakePassiveClock
	signUp  httpmw.SignUp
	cookies *httpmw.Cookies
	used    []string
	// withdrawn is true if the token is not in its file any more.
	withdrawn bool
}

func newLogin() *login {
	l := &login{clock: clocktesting.NewFakePassiveClock(noon)}
	earlier := metav1.NewTime(noon.Add(-time.Hour))
	l.user.Name, l.user.UID, l.user.CreationTimestamp = "alice", "1", earlier
	l.user.Spec.Issuer, l.user.Spec.Subject, l.user.Spec.RBACIdentity = "https://idp", "a1", "kedge:alice"
	l.session.Name, l.session.CreationTimestamp = "s1", earlier
	l.session.Spec = v1alpha1.SessionSpec{
		UserRef: v1alpha1.NamedRef{Name: "alice"}, LastUsedAt: earlier, ExpiresAt: metav1.NewTime(noon.Add(90 * time.Minute)),
	}
	l.token = auth.Identity{
		Kind: auth.Person, Issuer: "https://idp", Subject: "a1", Username: "kedge:alice", Credential: "hash",
		IssuedAt: noon.Add(-time.Minute), ExpiresAt: noon.Add(time.Hour),
	}
	return l
}

func (l *login) ByIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	return l.user.DeepCopy(), l.user.Spec.Issuer == issuer && l.user.Spec.Subject == subject
}

func (l *login) ByUsername(string) (*v1alpha1.User, bool) {
	if l.first != nil {
		return l.first, true
	}
	return l.user.DeepCopy(), true
}

func (l *login) ByName(name string) (*v1alpha1.User, bool) {
	return l.user.DeepCopy(), l.user.Name == name
}

func (l *login) Session(name string) (*v1alpha1.Session, bool) {
	return l.session.DeepCopy(), l.session.Name == name
}

func (l *login) SessionsOfToken(hash string) []*v1alpha1.Session {
	if hash != "hash" || l.session.Name == "" {
		return nil
	}
	return []*v1alpha1.Session{l.session.DeepCopy()}
}

// routes returns a route whose handler is called with the caller.
func (l *login) routes(serve func(*httpmw.Caller)) http.Handler {
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		id := l.token
		return &id, token == "token" && l.failure == nil, l.failure
	})
	r := chi.NewRouter()
	r.Use(httpmw.Authenticate(httpmw.Authentication{
		Tokens: tokens, People: l, Sessions: l, SignUp: l.signUp, SessionIdleTimeout: 2 * time.Hour, Clock: l.clock,
		Known:   func(id *auth.Identity) bool { return !l.withdrawn || id.Credential != "hash" },
		Cookies: l.cookies, Used: func(session string) { l.used = append(l.used, session) },
		Admins: httpmw.Admins{Groups: []string{"ops"}},
	}))
	handler := func(_ http.ResponseWriter, r *http.Request) { serve(httpmw.CallerOf(r)) }
	r.HandleFunc("/thing", handler)
	r.HandleFunc("/api/users/me", handler)
	return r
}

// ended are the ways in which a credential stops to be good.
func ended() map[string]struct {
	change  func(*login)
	code    errs.Code
	message string
} {
	now := metav1.NewTime(noon)
	type way = struct {
		change  func(*login)
		code    errs.Code
		message string
	}
	return map[string]way{
		"the token expired":             {func(l *login) { l.clock.SetTime(noon.Add(time.Hour)) }, errs.Unauthenticated, "expired"},
		"the token was withdrawn":       {func(l *login) { l.withdrawn = true }, errs.Unauthenticated, "not any more"},
		"the session was ended":         {func(l *login) { l.session.Spec.EndedAt = &now }, errs.Unauthenticated, "session was ended"},
		"the session is too old":        {func(l *login) { l.session.Spec.ExpiresAt = now }, errs.Unauthenticated, ""},
		"the session was idle":          {func(l *login) { l.session.Spec.LastUsedAt = metav1.NewTime(noon.Add(-2 * time.Hour)) }, errs.Unauthenticated, "session was ended"},
		"signed out everywhere":         {func(l *login) { l.user.Spec.TokensValidAfter = &now; l.session.Name = "" }, errs.Unauthenticated, "session was ended"},
		"the username claim changed":    {func(l *login) { l.token.Username = "kedge:bob" }, errs.Forbidden, "username"},
		"the username was reassigned":   {func(l *login) { l.user.Spec.RBACIdentity = "kedge:bob" }, errs.Forbidden, "username"},
		"another person's username":     {func(l *login) { l.first = &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "3"}} }, errs.Forbidden, "another person"},
		"rejected":                      {func(l *login) { l.user.Spec.Registration = v1alpha1.RegistrationRejected }, errs.Forbidden, "rejected"},
		"pending":                       {func(l *login) { l.user.Spec.Registration = v1alpha1.RegistrationPending }, errs.Forbidden, "approval"},
		"soft-deleted":                  {func(l *login) { l.user.Status.DeletionRequestedAt = &now }, errs.Forbidden, "undelete"},
		"purged, and a namesake exists": {func(l *login) { l.user.UID, l.user.CreationTimestamp = "2", now }, errs.Unauthenticated, ""},
	}
}

func codes(code errs.Code) int {
	if code == errs.Forbidden {
		return http.StatusForbidden
	}
	return http.StatusUnauthorized
}

func TestAuthenticate_refusesEndedCredentials(t *testing.T) {
	t.Parallel()
	for name, way := range ended() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, served := newLogin(), 0
			h := l.routes(func(*httpmw.Caller) { served++ })
			require.Equal(t, http.StatusOK, get(h, "/thing", as("token")).Code, "the positive control")
			way.change(l)
			if l.user.UID == "2" {
				l.user.Spec.Subject = "a2"
			}
			w := get(h, "/thing", as("token"))
			if l.user.UID != "2" {
				require.Equal(t, codes(way.code), w.Code, w.Body)
				require.Contains(t, w.Body.String(), way.message)
			} else {
				require.Equal(t, http.StatusForbidden, w.Code, "nobody signs up here")
			}
			require.Equal(t, 1, served)
		})
	}
}

// The caller of an open stream, or of a request whose body was long in coming.
func TestValid_endsWithTheCredential(t *testing.T) {
	t.Parallel()
	for name, way := range ended() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogin()
			w := get(l.routes(func(c *httpmw.Caller) {
				require.NoError(t, c.Valid())
				if name == "the username claim changed" {
					return // A token does not change.
				}
				way.change(l)
				err := c.Valid()
				require.True(t, errs.Is(err, way.code), "%v", err)
				require.ErrorContains(t, err, way.message)
			}), "/thing", as("token"))
			require.Equal(t, http.StatusOK, w.Code)
		})
	}
}

func TestAuthenticate_callersEndWithTheirSession(t *testing.T) {
	t.Parallel()
	l := newLogin()
	var got []*httpmw.Caller
	h := l.routes(func(c *httpmw.Caller) { got = append(got, c) })
	ask := func() *httpmw.Caller {
		require.Equal(t, http.StatusOK, get(h, "/thing", as("token")).Code)
		return got[len(got)-1]
	}
	c := ask()
	require.Equal(t, "s1", c.Session)
	require.Equal(t, l.token.ExpiresAt, c.ExpiresAt(), "the token ends first")
	require.Equal(t, "alice", c.Key())
	require.Equal(t, "kedge:alice", c.Username())
	l.token.ExpiresAt = noon.Add(24 * time.Hour)
	require.Equal(t, l.session.Spec.ExpiresAt.Time, ask().ExpiresAt())
	c = ask()
	require.Equal(t, noon.Add(time.Hour), c.EndsAt(), "the session was used two hours before that")
	l.session.Spec.LastUsedAt = metav1.NewTime(noon)
	require.Equal(t, l.session.Spec.ExpiresAt.Time, c.EndsAt(), "it is used again")
	l.session.Name = ""
	require.Equal(t, l.token.ExpiresAt, ask().ExpiresAt(), "a token that was fetched elsewhere")
	require.Equal(t, l.token.ExpiresAt, ask().EndsAt())
	require.Empty(t, ask().Session)
	l.token.ExpiresAt, l.token.IssuedAt, l.token.Credential = time.Time{}, time.Time{}, ""
	now := metav1.NewTime(noon)
	l.user.Spec.TokensValidAfter = &now
	require.Zero(t, ask().ExpiresAt(), "a static token")
	require.Zero(t, ask().EndsAt())
}

// A new login of a soft-deleted person is good for looking at the account.
func TestAuthenticate_deletedPeopleNeedANewLogin(t *testing.T) {
	t.Parallel()
	l := newLogin()
	h := l.routes(func(*httpmw.Caller) {})
	deleted := metav1.NewTime(noon.Add(-time.Minute))
	l.user.Status.DeletionRequestedAt = &deleted
	require.Equal(t, http.StatusUnauthorized, get(h, "/api/users/me", as("token")).Code)
	l.session.CreationTimestamp = metav1.NewTime(noon)
	require.Equal(t, http.StatusOK, get(h, "/api/users/me", as("token")).Code)
	require.Equal(t, http.StatusForbidden, get(h, "/thing", as("token")).Code)
	require.Equal(t, http.StatusForbidden, get(h, "/api/users/%6De", as("token")).Code, "the router takes it for another person")
}

func TestAuthenticate_unverifiableIsNotInvalid(t *testing.T) {
	t.Parallel()
	l := newLogin()
	h := l.routes(func(*httpmw.Caller) {})
	later := errs.New(errs.Unavailable, "the issuer does not answer")
	later.RetryAfter = 7 * time.Second
	for _, c := range []struct {
		failure error
		code    int
		retry   string
	}{
		{nil, http.StatusOK, ""},
		{errors.New("internal detail"), http.StatusUnauthorized, ""},
		{errs.New(errs.Internal, "internal detail"), http.StatusUnauthorized, ""},
		{errs.New(errs.Forbidden, "a reserved group"), http.StatusForbidden, ""},
		{errs.Wrap(errs.Unavailable, errors.New("internal detail"), "the issuer does not answer"), http.StatusServiceUnavailable, "1"},
		{later, http.StatusServiceUnavailable, "7"},
	} {
		l.failure = c.failure
		w := get(h, "/thing", as("token"))
		require.Equal(t, c.code, w.Code, "%v", c.failure)
		require.Equal(t, c.retry, w.Header().Get("Retry-After"), "%v", c.failure)
		require.NotContains(t, w.Body.String(), "internal detail")
	}
}

func TestAuthenticate_nobodySignsUpWithoutSignUp(t *testing.T) {
	t.Parallel()
	l := newLogin()
	h := l.routes(func(*httpmw.Caller) {})
	require.Equal(t, http.StatusOK, get(h, "/thing", as("token")).Code)
	l.token.Subject = "stranger"
	w := get(h, "/thing", as("token"))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "log in first")
}

func TestAuthenticate_hasUsesWritten(t *testing.T) {
	t.Parallel()
	l := newLogin()
	h := l.routes(func(*httpmw.Caller) {})
	require.Equal(t, http.StatusOK, get(h, "/thing", as("token")).Code)
	require.Equal(t, []string{"s1"}, l.used, "the last use was an hour ago")
	l.session.Spec.LastUsedAt = metav1.NewTime(noon.Add(time.Second - 5*time.Minute))
	require.Equal(t, http.StatusOK, get(h, "/thing", as("token")).Code)
	require.Len(t, l.used, 1)
	l.session.Spec.EndedAt = &metav1.Time{Time: noon}
	l.session.Spec.LastUsedAt = metav1.NewTime(noon.Add(-time.Hour))
	require.Equal(t, http.StatusUnauthorized, get(h, "/thing", as("token")).Code)
	require.Len(t, l.used, 1, "a refused request is no use")
}

// still is a login that does not change.
type still struct {
	*login
	sessions []*v1alpha1.Session
}

func (s still) ByIdentity(string, string) (*v1alpha1.User, bool) { return &s.user, true }
func (s still) ByUsername(string) (*v1alpha1.User, bool)         { return &s.user, true }
func (s still) SessionsOfToken(string) []*v1alpha1.Session       { return s.sessions }

// It is asked twice for every proxied request.
//
//nolint:paralleltest // AllocsPerRun counts the allocations of all goroutines
func TestValid_doesNotAllocate(t *testing.T) {
	l := newLogin()
	s := still{l, []*v1alpha1.Session{&l.session}}
	r := chi.NewRouter()
	r.Use(httpmw.Authenticate(httpmw.Authentication{
		Tokens: authenticator(func(string) (*auth.Identity, bool, error) { return &l.token, true, nil }),
		People: s, Sessions: s, SessionIdleTimeout: 2 * time.Hour, Clock: l.clock,
	}))
	var caller *httpmw.Caller
	r.Get("/thing", func(_ http.ResponseWriter, r *http.Request) { caller = httpmw.CallerOf(r) })
	require.Equal(t, http.StatusOK, get(r, "/thing", as("token")).Code)
	require.Equal(t, "s1", caller.Session)
	require.NoError(t, caller.Valid())
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = caller.Valid() }))
}
