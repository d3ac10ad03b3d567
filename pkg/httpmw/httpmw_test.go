package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	org   = "231a151a-434e-4623-ad6e-69406abb9387"
	other = "331a151a-434e-4623-ad6e-69406abb9387"
	ws    = "9acbf567-a188-4c75-9c40-3c3bec1a775f"
	gone  = "aacbf567-a188-4c75-9c40-3c3bec1a775f"
)

type authenticator func(token string) (*auth.Identity, bool, error)

func (f authenticator) Authenticate(_ context.Context, token string) (*auth.Identity, bool, error) {
	return f(token)
}

// noSessions has no Session.
type noSessions struct{}

func (noSessions) Session(string) (*v1alpha1.Session, bool) { return nil, false }

func (noSessions) SessionsOfToken(string) []*v1alpha1.Session { return nil }

// authentication has --admin-user=admin, --admin-user=test#admin, --admin-group=ops, --auditor-user=test#guest and
// --auditor-group=audit.
func authentication(tokens auth.Authenticator, people httpmw.People, signUp httpmw.SignUp) httpmw.Authentication {
	return httpmw.Authentication{
		Tokens: tokens, People: people, Sessions: noSessions{}, SignUp: signUp, Clock: clock.RealClock{},
		Admins:   httpmw.Admins{Users: []string{"admin", "test#admin"}, Groups: []string{"ops"}},
		Auditors: httpmw.Admins{Users: []string{"test#guest"}, Groups: []string{"audit"}},
	}
}

// world is one Org with two Workspaces, one of them soft-deleted, and people who
// are in them.
type world struct{ users map[string]*v1alpha1.User }

func newWorld() *world {
	w := &world{users: map[string]*v1alpha1.User{}}
	for _, name := range []string{"admin", "member", "guest", "stranger", "pending", "deleted"} {
		u := &v1alpha1.User{}
		u.Name, u.Spec.Subject = name, name
		w.users[name] = u
	}
	now := metav1.Now()
	w.users["pending"].Spec.Registration = v1alpha1.RegistrationPending
	w.users["deleted"].Status.DeletionRequestedAt = &now
	return w
}

func (w *world) ByIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	u, ok := w.users[subject]
	return u, ok && issuer == "test"
}

func (w *world) ByUsername(string) (*v1alpha1.User, bool) { return nil, false }

func (w *world) ByName(name string) (*v1alpha1.User, bool) { return w.ByIdentity("test", name) }

func (w *world) Index(user string) []v1alpha1.MembershipIndexEntry {
	row := func(o, ws string, role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
		return v1alpha1.MembershipIndexEntry{OrgUUID: o, WorkspaceUUID: ws, Role: role}
	}
	switch user {
	case "admin":
		return []v1alpha1.MembershipIndexEntry{row(org, "", "admin"), row(other, "", "admin")}
	case "member":
		return []v1alpha1.MembershipIndexEntry{row(org, "", "member")}
	case "guest":
		return []v1alpha1.MembershipIndexEntry{row(org, ws, "member"), row(org, gone, "member")}
	}
	return nil
}

func (w *world) Org(uuid string) (tenancy.Org, bool) {
	o := tenancy.Org{Organization: tenancy.NewOrganization(uuid, "O", "admin"), ClusterID: "c"}
	if uuid == other {
		now := metav1.Now()
		o.Status.DeletionRequestedAt = &now
	}
	return o, uuid == org || uuid == other
}

func (w *world) Workspace(o, uuid string) (tenancy.Workspace, bool) {
	if o != org || uuid != ws && uuid != gone {
		return tenancy.Workspace{}, false
	}
	return tenancy.Workspace{UUID: uuid, OrgUUID: o, Terminating: uuid == gone}, true
}

// deletedOrg is the world with every Org soft-deleted.
type deletedOrg struct{ *world }

func (w deletedOrg) Org(uuid string) (tenancy.Org, bool) {
	o, found := w.world.Org(uuid)
	now := metav1.Now()
	o.Status.DeletionRequestedAt = &now
	return o, found
}

// creator is for a world in which nobody waits for what they made.
func (w *world) creator() tenancy.Creator {
	none := func(string, string) (*v1alpha1.Membership, bool) { return nil, false }
	return tenancy.Creator{Org: w.Org, Workspace: w.Workspace, Membership: none}
}

func (w *world) router(signUp httpmw.SignUp) http.Handler { return w.mounted(signUp, nil) }

// routerWith is the router with more routes.
func (w *world) routerWith(mount func(chi.Router)) http.Handler { return w.mounted(nil, mount) }

func (w *world) mounted(signUp httpmw.SignUp, mount func(chi.Router)) http.Handler {
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		switch {
		case token == "broken":
			return nil, false, errors.New("internal detail")
		case token == "bot":
			return &auth.Identity{Kind: auth.Bot}, true, nil
		case strings.HasPrefix(token, "unknown"):
			return nil, false, nil
		}
		return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, true, nil
	})
	if signUp == nil {
		signUp = func(context.Context, *auth.Identity, bool) (*v1alpha1.User, error) {
			return nil, errs.New(errs.Forbidden, "closed")
		}
	}
	ok := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, httpmw.CallerOf(r).User.Name) }
	s := httpmw.Scopes{Tenants: w, Creator: w.creator()}
	r := chi.NewRouter()
	r.Use(httpmw.Authenticate(authentication(tokens, w, signUp)))
	r.Get("/api/users/me", ok)
	r.Get("/plain", ok)
	r.With(s.Org).Get("/orgs/{org}", ok)
	r.With(s.OrgVisitor).Get("/orgs/{org}/visit", ok)
	r.With(s.Workspace).Get("/orgs/{org}/ws/{ws}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, string(httpmw.ScopeOf(r).WorkspaceRole))
	})
	if mount != nil {
		mount(r)
	}
	return r
}

func get(h http.Handler, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func as(name string, headers ...string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + name}}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return h
}

func TestAuthenticate_admitsOneGoodBearerToken(t *testing.T) {
	t.Parallel()
	h := newWorld().router(nil)
	require.Equal(t, http.StatusOK, get(h, "/plain", as("member")).Code)
	require.Equal(t, http.StatusOK, get(h, "/plain", http.Header{"Authorization": {"bearer member"}}).Code)
	for name, header := range map[string]http.Header{
		"none":           {},
		"two":            {"Authorization": {"Bearer member", "Bearer admin"}},
		"basic":          {"Authorization": {"Basic bWVtYmVyOg=="}},
		"no token":       {"Authorization": {"Bearer "}},
		"no scheme":      {"Authorization": {"member"}},
		"a second token": {"Authorization": {"Bearer member, Bearer admin"}},
		"two spaces":     {"Authorization": {"Bearer  member"}},
		"a line break":   {"Authorization": {"Bearer member\r\nX-Remote-User: admin"}},
		"10 MB":          {"Authorization": {"Bearer " + strings.Repeat("a", 10<<20)}},
		"a million dots": {"Authorization": {"Bearer " + strings.Repeat(".", 1_000_000)}},
		"unknown":        as("unknown"),
		"broken":         as("broken"),
	} {
		w := get(h, "/plain", header)
		require.Equal(t, http.StatusUnauthorized, w.Code, name)
		require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"), name)
		require.NotContains(t, w.Body.String(), "internal detail", name)
	}
	require.Equal(t, http.StatusForbidden, get(h, "/plain", as("bot")).Code)
}

func FuzzBearer(f *testing.F) {
	for _, s := range []string{"Bearer x", "bearer x", "Bearer", "Bearer  x", "Basic x", "Bearer x=y", "Bearer \x00", "Bearer a b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{"Authorization": {value}}}
		token, err := httpmw.BearerToken(r)
		if err != nil {
			require.True(t, errs.Is(err, errs.Unauthenticated))
			return
		}
		require.NotEmpty(t, token)
		require.True(t, strings.HasSuffix(value, token))
		require.False(t, strings.ContainsAny(token, " \t\r\n,;\x00"))
	})
}

// O-8, and people whose registration waits: they may look at themselves.
func TestO8_PeopleWhoMayNotAct(t *testing.T) {
	t.Parallel()
	h := newWorld().router(nil)
	for _, name := range []string{"pending", "deleted"} {
		require.Equal(t, http.StatusForbidden, get(h, "/plain", as(name)).Code, name)
		require.Equal(t, http.StatusOK, get(h, "/api/users/me", as(name)).Code, name)
	}
	require.Contains(t, get(h, "/plain", as("pending")).Body.String(), "approval")
}

func TestAuthenticate_signsUpAtFirstSight(t *testing.T) {
	t.Parallel()
	w := newWorld()
	h := w.router(func(_ context.Context, id *auth.Identity, _ bool) (*v1alpha1.User, error) {
		u := &v1alpha1.User{}
		u.Name = "made-for-" + id.Subject
		w.users[id.Subject] = u
		return u, nil
	})
	require.Equal(t, "made-for-newcomer", get(h, "/plain", as("newcomer")).Body.String())
	require.Equal(t, "member", get(h, "/plain", as("member")).Body.String())
	require.Equal(t, http.StatusForbidden, get(w.router(nil), "/plain", as("late")).Code)
}

// O-2: the tenant headers are required and agree with the path.
func TestO2_TenantHeaders(t *testing.T) {
	t.Parallel()
	h := newWorld().router(nil)
	require.Equal(t, http.StatusOK, get(h, "/orgs/"+org, as("member", httpmw.OrgHeader, org)).Code)
	for name, header := range map[string]http.Header{
		"missing":     as("member"),
		"twice":       as("member", httpmw.OrgHeader, org, httpmw.OrgHeader, org),
		"two of them": as("member", httpmw.OrgHeader, org, httpmw.OrgHeader, other),
		"another":     as("member", httpmw.OrgHeader, other),
		"upper case":  as("member", httpmw.OrgHeader, strings.ToUpper(org)),
		"a path":      as("member", httpmw.OrgHeader, "../"+org),
		"empty":       as("member", httpmw.OrgHeader, ""),
	} {
		w := get(h, "/orgs/"+org, header)
		require.Equal(t, http.StatusBadRequest, w.Code, name)
		require.Contains(t, w.Body.String(), "header:X-Kedge-Org", name)
	}
	both := as("guest", httpmw.OrgHeader, org, httpmw.WorkspaceHeader, ws)
	require.Equal(t, http.StatusOK, get(h, "/orgs/"+org+"/ws/"+ws, both).Code)
	require.Contains(t, get(h, "/orgs/"+org+"/ws/"+ws, as("guest", httpmw.OrgHeader, org)).Body.String(), "header:X-Kedge-Workspace")
}

func FuzzTenantHeaders(f *testing.F) {
	f.Add(org, org)
	f.Add(strings.ToUpper(org), org)
	f.Add("", org)
	h := newWorld().router(nil)
	f.Fuzz(func(t *testing.T, header, inPath string) {
		if !tenancy.IsUUID(inPath) {
			inPath = other
		}
		w := get(h, "/orgs/"+inPath, as("member", httpmw.OrgHeader, header))
		if w.Code == http.StatusOK {
			require.Equal(t, org, header)
			require.Equal(t, org, inPath)
		} else {
			require.Contains(t, []int{400, 403, 404}, w.Code)
		}
	})
}

func TestScopes_foreignAndMissingGetTheSameBytes(t *testing.T) {
	t.Parallel()
	h := newWorld().router(nil)
	missing := "551a151a-434e-4623-ad6e-69406abb9387"
	answer := func(name, path, o, w string) string {
		header := as(name, httpmw.OrgHeader, o)
		if w != "" {
			header.Set(httpmw.WorkspaceHeader, w)
		}
		got := get(h, path, header)
		require.Equal(t, http.StatusForbidden, got.Code)
		return got.Body.String()
	}
	require.Equal(t, answer("stranger", "/orgs/"+org, org, ""), answer("stranger", "/orgs/"+missing, missing, ""))
	// A deleted Org of somebody else's is as foreign as a live one.
	require.Equal(t, answer("stranger", "/orgs/"+org, org, ""), answer("stranger", "/orgs/"+other, other, ""))
	require.Equal(t, answer("member", "/orgs/"+org+"/ws/"+ws, org, ws), answer("member", "/orgs/"+org+"/ws/"+missing, org, missing))
	require.Equal(t, answer("guest", "/orgs/"+org, org, ""), answer("guest", "/orgs/"+missing, missing, ""))
}

// A shard of kcp that is down is that of some Organizations. Strangers do not learn which exist.
func TestScopes_refuseAnOrganizationThatCannotBeReached(t *testing.T) {
	t.Parallel()
	w := newWorld()
	asked := []string{}
	s := httpmw.Scopes{Tenants: w, Creator: w.creator(), Reachable: func(uuid string, _ ...string) error {
		asked = append(asked, uuid)
		if uuid == org {
			return errs.New(errs.Unavailable, "try again")
		}
		return nil
	}}
	h := w.routerWith(func(r chi.Router) {
		r.With(s.Org).Get("/down/{org}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		r.With(s.Workspace).Get("/down/{org}/ws/{ws}", func(http.ResponseWriter, *http.Request) { t.Error("it was served") })
	})
	require.Equal(t, http.StatusServiceUnavailable, get(h, "/down/"+org, as("member", httpmw.OrgHeader, org)).Code)
	require.Equal(t, http.StatusServiceUnavailable, get(h, "/down/"+org+"/ws/"+ws, as("admin", httpmw.OrgHeader, org, httpmw.WorkspaceHeader, ws)).Code)
	require.Equal(t, []string{org, org}, asked)
	require.Equal(t, http.StatusForbidden, get(h, "/down/"+org, as("stranger", httpmw.OrgHeader, org)).Code)
	require.Len(t, asked, 2)
}

// O-15: an Org endpoint asks for the role in the Org; a Workspace's lets Org
// admins in.
func TestO15_Scopes(t *testing.T) {
	t.Parallel()
	h := newWorld().router(nil)
	for _, c := range []struct {
		name, path string
		code       int
		body       string
	}{
		{"admin", "/orgs/" + org, 200, "admin"}, {"member", "/orgs/" + org, 200, "member"}, {"guest", "/orgs/" + org, 403, ""},
		{"guest", "/orgs/" + org + "/visit", 200, "guest"}, {"stranger", "/orgs/" + org + "/visit", 403, ""},
		{"admin", "/orgs/" + org + "/ws/" + ws, 200, "admin"}, {"guest", "/orgs/" + org + "/ws/" + ws, 200, "member"},
		{"member", "/orgs/" + org + "/ws/" + ws, 403, ""},
	} {
		w := get(h, c.path, as(c.name, httpmw.OrgHeader, org, httpmw.WorkspaceHeader, ws))
		require.Equal(t, c.code, w.Code, "%s %s", c.name, c.path)
		if c.body != "" {
			require.Equal(t, c.body, w.Body.String())
		}
	}
}

// O-13: what is soft-deleted is 404 for those who are in it.
func TestO13_SoftDeletedIsNotFound(t *testing.T) {
	t.Parallel()
	h := newWorld().router(nil)
	require.Equal(t, http.StatusNotFound, get(h, "/orgs/"+other, as("admin", httpmw.OrgHeader, other)).Code)
	require.Equal(t, http.StatusNotFound, get(h, "/orgs/"+org+"/ws/"+gone, as("guest", httpmw.OrgHeader, org, httpmw.WorkspaceHeader, gone)).Code)
}

func TestScopeOf_panicsWithoutAScope(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	require.Panics(t, func() { httpmw.CallerOf(r) })
	require.Panics(t, func() { httpmw.ScopeOf(r) })
}

func TestObserve(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := httpmw.NewMetrics(registry)
	require.NoError(t, err)
	core, logs := observer.New(zap.DebugLevel)
	r := chi.NewRouter()
	r.Use(httpmw.Observe(zap.New(core), m, nil))
	r.Get("/things/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r.Get("/panics", func(http.ResponseWriter, *http.Request) { panic("secret-detail") })

	w := get(r, "/things/7?token=hush", http.Header{"X-Request-Id": {"my-id"}, "Authorization": {"Bearer hush"}})
	require.NotContains(t, w.Header().Get("X-Request-Id"), "my-id", "a client cannot pass for another request")
	require.NotEmpty(t, w.Header().Get("X-Request-Id"))
	named := logs.FilterField(zap.String("clientRequest", "my-id")).All()
	require.Len(t, named, 1)
	require.Equal(t, w.Header().Get("X-Request-Id"), named[0].ContextMap()["request"])
	w = get(r, "/things/7", http.Header{"X-Request-Id": {"in sane\n"}})
	require.NotEmpty(t, w.Header().Get("X-Request-Id"))
	require.Len(t, logs.FilterFieldKey("clientRequest").All(), 1)
	w = get(r, "/panics", nil)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.NotContains(t, w.Body.String(), "secret-detail")

	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kedge_http_requests_total Requests answered, by route pattern, HTTP method and status code.
# TYPE kedge_http_requests_total counter
kedge_http_requests_total{code="418",method="GET",route="/things/{id}"} 2
kedge_http_requests_total{code="500",method="GET",route="/panics"} 1
`), "kedge_http_requests_total"))
	for _, entry := range logs.All() {
		for _, v := range entry.ContextMap() {
			require.NotContains(t, fmt.Sprint(v), "hush", "no token in a log")
		}
	}
}
