package sessions_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/sessions"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	mine    = "01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e3f"
	mine2   = "01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e40"
	foreign = "01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e41"
	missing = "01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e42"

	path = "/api/users/me/sessions"
	// A platform admin looks at the Sessions of Alice.
	adminPath = "/api/admin/users/" + apitest.Admin + "/sessions"
)

// fixture is its own Service: kcp has what is written, and the caches get it later.
type fixture struct {
	world     *apitest.World
	http      http.Handler
	err       error
	ended     []string
	rechecked []string
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{world: apitest.NewWorld()}
	f.world.PutSession(apitest.Session(mine, apitest.Admin, apitest.Token(apitest.Admin)))
	f.world.PutSession(apitest.Session(mine2, apitest.Admin))
	f.world.PutSession(apitest.Session(foreign, apitest.Foreigner))
	h := &sessions.Handler{
		Deps: f.world.Deps(t, nil, ""), Sessions: f.world, Service: f, Recheck: func(user string) { f.rechecked = append(f.rechecked, user) },
		IdleTimeout: apitest.IdleTimeout,
	}
	h.Clock = clocktesting.NewFakePassiveClock(apitest.Now())
	f.http = apitest.Router(f.world, h.Mount)
	return f
}

func (f *fixture) End(_ context.Context, user, name string) error {
	if f.err != nil {
		return f.err
	}
	f.ended = append(f.ended, user+" "+name)
	f.later(name)
	return nil
}

func (f *fixture) EndAll(_ context.Context, user string) error {
	if f.err != nil {
		return f.err
	}
	f.ended = append(f.ended, user)
	for _, s := range f.world.SessionsOf(user) {
		f.later(s.Name)
	}
	f.world.Later(func(w *apitest.World) {
		u := apitest.Person(user)
		u.Spec.TokensValidAfter = &metav1.Time{Time: apitest.Now()}
		w.PutUser(u)
	})
	return nil
}

// later ends a Session in the caches.
func (f *fixture) later(name string) {
	f.world.Later(func(w *apitest.World) {
		w.ChangeSession(name, func(s *v1alpha1.Session) { s.Spec.EndedAt = &metav1.Time{Time: apitest.Now()} })
	})
}

func (f *fixture) call(as, method, path string) apitest.Answer {
	return apitest.Call{As: as, Method: method, Path: path}.Do(f.http)
}

func TestList_hasTheOpenSessionsOfThePerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, p := range []struct{ as, path string }{{apitest.Admin, path}, {apitest.Operator, adminPath}} {
		var list struct{ Items []map[string]any }
		f.call(p.as, http.MethodGet, p.path).Into(t, http.StatusOK, &list)
		require.Equal(t, []map[string]any{
			{
				"id": mine, "client": "cli", "description": "host of alice", "createdAt": "2026-03-01T12:00:00Z",
				"lastUsedAt": "2026-03-01T10:59:00Z", "expiresAt": "2026-03-01T11:59:00Z", "current": p.as == apitest.Admin,
			},
			{
				"id": mine2, "client": "cli", "description": "host of alice", "createdAt": "2026-03-01T12:00:00Z",
				"lastUsedAt": "2026-03-01T10:59:00Z", "expiresAt": "2026-03-01T11:59:00Z", "current": false,
			},
		}, list.Items)
	}
	now := metav1.NewTime(apitest.Now())
	for name, change := range map[string]func(*v1alpha1.Session){
		"ended":        func(s *v1alpha1.Session) { s.Spec.EndedAt = &now },
		"idle":         func(s *v1alpha1.Session) { s.Spec.LastUsedAt = metav1.NewTime(now.Add(-apitest.IdleTimeout)) },
		"not redeemed": func(s *v1alpha1.Session) { s.Spec.Code = &v1alpha1.SessionCode{ExpiresAt: apitest.Epoch()} },
	} {
		f := newFixture(t)
		f.world.ChangeSession(mine2, change)
		require.Equal(t, []string{mine}, f.call(apitest.Admin, http.MethodGet, path).Items(t, "id"), name)
	}
	require.Empty(t, f.call(apitest.Member, http.MethodGet, path).Items(t, "id"))
	f.call(apitest.Operator, http.MethodGet, "/api/admin/users/nobody/sessions").Refused(t, http.StatusNotFound)
}

func TestGet_isForPlatformAdmins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.call(apitest.Operator, http.MethodGet, adminPath+"/"+mine)
	require.Equal(t, mine, a.Object(t, http.StatusOK)["id"])
	require.Equal(t, apitest.Tag(apitest.FirstVersion), a.Header.Get("ETag"))
	f.call(apitest.Operator, http.MethodGet, adminPath+"/"+foreign).Refused(t, http.StatusNotFound)
}

func TestEnd_endsOneSession(t *testing.T) {
	t.Parallel()
	for _, p := range []struct{ as, path string }{{apitest.Admin, path}, {apitest.Operator, adminPath}} {
		f := newFixture(t)
		require.Equal(t, http.StatusNoContent, f.call(p.as, http.MethodDelete, p.path+"/"+mine2).Code)
		require.Equal(t, []string{apitest.Admin + " " + mine2}, f.ended)
		require.Zero(t, f.world.StillToCome(), "the answer waits for the caches")
		require.Equal(t, []string{apitest.Admin}, f.rechecked)
		f.call(p.as, http.MethodDelete, p.path+"/"+mine2).Refused(t, http.StatusNotFound)
	}
}

func TestEnd_givesAReceipt(t *testing.T) {
	t.Parallel()
	for _, at := range []string{path + "/" + mine2, path + "?all=true"} {
		f := newFixture(t)
		a := apitest.Call{As: apitest.Admin, Method: http.MethodDelete, Path: at, Header: http.Header{"Prefer": {"return=representation"}}}.Do(f.http)
		require.JSONEq(t, fmt.Sprintf(`{"streamsCut":%d,"hubRefusedAt":"2026-03-01T11:00:00Z","kcpRefusedAt":null}`, apitest.StreamsCut), a.Body)
		require.Equal(t, http.StatusOK, a.Code)
		require.Empty(t, f.world.Counting())
		events := f.world.Events()
		require.Equal(t, apitest.StreamsCut, events[len(events)-1].Facts.Receipt.StreamsCut)
	}
}

// The token of the caller was handed out through the Session.
func TestEnd_ofTheCallersOwnSessionRefusesTheirToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.Equal(t, http.StatusOK, f.call(apitest.Admin, http.MethodGet, path).Code)
	require.Equal(t, http.StatusNoContent, f.call(apitest.Admin, http.MethodDelete, path+"/"+mine).Code)
	require.Contains(t, f.call(apitest.Admin, http.MethodGet, path).Refused(t, http.StatusUnauthorized).Message, "kedge login")
}

func TestEnd_anothersSessionLooksLikeNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := f.call(apitest.Admin, http.MethodDelete, path+"/"+missing)
	want.Refused(t, http.StatusNotFound)
	for _, p := range []struct{ as, path string }{
		{apitest.Admin, path + "/" + foreign}, {apitest.Operator, path + "/" + mine}, {apitest.Operator, adminPath + "/" + foreign},
		{apitest.Admin, path + "/x"}, {apitest.Admin, path + "/..%2F" + mine},
	} {
		require.Equal(t, want, f.call(p.as, http.MethodDelete, p.path), "%v", p)
	}
	// It was removed meanwhile, or it is not in the caches.
	f.err = errs.New(errs.NotFound, "other bytes")
	require.Equal(t, want, f.call(apitest.Admin, http.MethodDelete, path+"/"+mine2))
	require.Empty(t, f.ended)
}

func TestEndAll_signsOutEverywhere(t *testing.T) {
	t.Parallel()
	for _, p := range []struct{ as, path string }{{apitest.Admin, path}, {apitest.Operator, adminPath}} {
		f := newFixture(t)
		require.Equal(t, http.StatusNoContent, f.call(p.as, http.MethodDelete, p.path+"?all=true").Code)
		require.Equal(t, []string{apitest.Admin}, f.ended)
		require.Zero(t, f.world.StillToCome())
		require.Equal(t, []string{apitest.Admin}, f.rechecked)
	}
}

func TestEndAll_needsToBeAskedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, query := range []string{"", "?all=false", "?all=yes", "?all=true&all=true"} {
		f.call(apitest.Admin, http.MethodDelete, path+query).RefusedField(t, "query:all")
		f.call(apitest.Operator, http.MethodDelete, adminPath+query).RefusedField(t, "query:all")
	}
	require.Empty(t, f.ended)
}

func TestAdmin_isForPlatformAdminsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, adminPath}, {http.MethodGet, adminPath + "/" + mine},
		{http.MethodDelete, adminPath + "?all=true"}, {http.MethodDelete, adminPath + "/" + mine},
	} {
		f.call(apitest.Admin, c.method, c.path).Refused(t, http.StatusForbidden)
		f.call("", c.method, c.path).Refused(t, http.StatusUnauthorized)
	}
	require.Empty(t, f.ended)
}

func TestEnd_reportsAFault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.err = errs.New(errs.Unavailable, "kcp does not answer")
	f.call(apitest.Admin, http.MethodDelete, path+"/"+mine2).Refused(t, http.StatusServiceUnavailable)
	f.call(apitest.Admin, http.MethodDelete, path+"?all=true").Refused(t, http.StatusServiceUnavailable)
}

func TestEnd_honoursIfMatch(t *testing.T) {
	t.Parallel()
	for header, code := range map[string]int{
		apitest.Tag(apitest.FirstVersion): http.StatusNoContent, "*": http.StatusNoContent,
		apitest.Tag("43"): http.StatusPreconditionFailed, "43": http.StatusBadRequest,
	} {
		f := newFixture(t)
		a := apitest.Call{As: apitest.Operator, Method: http.MethodDelete, Path: adminPath + "/" + mine, Header: apitest.IfMatch(header)}.Do(f.http)
		require.Equal(t, code, a.Code, header)
	}
}
