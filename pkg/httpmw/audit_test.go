package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/storage"
)

// behindObserve runs a handler behind Observe.
func behindObserve(next http.Handler) http.Handler {
	m, err := httpmw.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	return httpmw.Observe(zap.NewNop(), m, nil)(next)
}

// audited runs a handler behind Observe and Audit.
func audited(log func(audit.Event) error) func(http.Handler) http.Handler {
	a := httpmw.NewAuditor(log, clocktesting.NewFakePassiveClock(time.Unix(1_000, 0)), nil, nil, nil)
	return func(next http.Handler) http.Handler { return behindObserve(a.Audit(next)) }
}

// Nothing that was given is left out of the log, and no refusal can fill it.
func TestRecord_samplesOnlyRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event audit.Event
		want  int
	}{
		"given to one whom the cache lacks": {audit.Event{Stage: audit.StageOutcome, Code: http.StatusOK, Actor: audit.Actor{Kind: audit.ActorAnonymous}}, 3},
		"refused to a stranger":             {audit.Event{Stage: audit.StageOutcome, Code: http.StatusBadRequest, Actor: audit.Actor{Kind: audit.ActorAnonymous}}, 1},
		"refused to a person":               {audit.Event{Stage: audit.StageOutcome, Code: http.StatusBadRequest, Actor: audit.Actor{Kind: audit.ActorPerson, User: "alice"}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := 0
			a := httpmw.NewAuditor(func(audit.Event) error { written++; return nil }, clocktesting.NewFakePassiveClock(time.Unix(1_000, 0)), nil, nil, nil)
			for range 3 {
				require.NoError(t, a.Record(t.Context(), c.event))
			}
			require.Equal(t, c.want, written)
		})
	}
}

// auditScene has the events of requests.
type auditScene struct {
	http   http.Handler
	clock  *clocktesting.FakePassiveClock
	events []audit.Event
	fails  error
	// writes counts the changes that were carried out.
	writes int
	// full refuses a change for which the store has no room.
	full func(storage.Write) error
}

// newAuditScene returns routes behind Audit. Each changes one thing, after Intend.
func newAuditScene() *auditScene {
	s := &auditScene{clock: clocktesting.NewFakePassiveClock(time.Unix(1_000, 0))}
	a := httpmw.NewAuditor(func(e audit.Event) error {
		if s.fails == nil {
			s.events = append(s.events, e)
		}
		return s.fails
	}, s.clock, func(w storage.Write) error {
		if s.full == nil {
			return nil
		}
		return s.full(w)
	}, nil, nil)
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, token != "bad", nil
	})
	change := func(i httpmw.Intent) http.HandlerFunc {
		return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if err := httpmw.Intend(r, i); err != nil {
				return err
			}
			s.writes++
			switch r.URL.Query().Get("then") {
			case "fail":
				return errs.New(errs.Conflict, "no")
			case "panic":
				panic("secret-detail")
			case "abort":
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Location", "/api/orgs/o/members/made")
			w.WriteHeader(http.StatusCreated)
			return nil
		})
	}
	r := chi.NewRouter()
	r.Use(behindObserve, a.Refusals)
	r.Route("/api", func(r chi.Router) {
		r.Use(a.Audit, httpmw.Authenticate(authentication(tokens, everybody{}, nil)), httpmw.Limited)
		r.Post("/orgs", change(httpmw.Intent{Org: "made"}))
		r.Post("/orgs/{org}/undelete", change(httpmw.Intent{SameSize: true}))
		r.Post("/orgs/{org}/members", change(httpmw.Intent{Facts: audit.Facts{Role: "admin"}}))
		r.Delete("/orgs/{org}/members/{user}", change(httpmw.Intent{Reduces: true, Facts: audit.Facts{Cascade: true}}))
		r.Get("/orgs/{org}", ok)
		r.Patch("/orgs/{org}", httpapi.Handle(func(http.ResponseWriter, *http.Request) error { return errs.New(errs.Forbidden, "no") }))
	})
	s.http = r
	return s
}

// take returns the events since the last call, without what differs from run to run.
func (s *auditScene) take(t *testing.T) []audit.Event {
	t.Helper()
	events := s.events
	s.events = nil
	for i := len(events) - 1; i >= 0; i-- {
		require.NotEmpty(t, events[i].ID)
		require.Equal(t, events[0].ID, events[i].ID)
		require.Equal(t, "192.0.2.1", events[i].Peer)
		events[i].ID, events[i].Peer = "", ""
	}
	return events
}

func TestAudit_writesIntentAndOutcome(t *testing.T) {
	t.Parallel()
	s := newAuditScene()
	alice := audit.Actor{Kind: audit.ActorPerson, User: "alice", Issuer: "test"}
	add := audit.Event{Actor: alice, Action: "POST /api/orgs/{org}/members", Org: "o", Outsider: true, Facts: &audit.Facts{Role: "admin"}}
	remove := audit.Event{Actor: alice, Action: "DELETE /api/orgs/{org}/members/{user}", Org: "o", Outsider: true, Object: "bob", Facts: &audit.Facts{Cascade: true}}
	create := audit.Event{Actor: alice, Action: "POST /api/orgs", Org: "made"}
	both := func(e audit.Event, code int, object string) []audit.Event {
		intent, outcome := e, e
		intent.Stage, outcome.Stage, outcome.Code = audit.StageIntent, audit.StageOutcome, code
		if object != "" {
			outcome.Object = object
		}
		return []audit.Event{intent, outcome}
	}
	for _, c := range []struct {
		method, path string
		want         []audit.Event
	}{
		{http.MethodPost, "/api/orgs/o/members", both(add, http.StatusCreated, "made")},
		{http.MethodPost, "/api/orgs/o/members?then=fail", both(add, http.StatusConflict, "")},
		{http.MethodPost, "/api/orgs/o/members?then=panic", both(add, http.StatusInternalServerError, "")},
		{http.MethodDelete, "/api/orgs/o/members/bob?cascade=true", both(remove, http.StatusCreated, "")},
		{http.MethodPost, "/api/orgs", both(create, http.StatusCreated, "made")},
		{http.MethodPatch, "/api/orgs/o", []audit.Event{{
			Stage: audit.StageOutcome, Actor: alice, Action: "PATCH /api/orgs/{org}", Org: "o", Outsider: true, Unchanged: true, Code: http.StatusForbidden,
		}}},
		{http.MethodGet, "/api/orgs/o", nil},
		{http.MethodHead, "/api/orgs/o", nil},
	} {
		do(s.http, c.method, c.path, as("alice"))
		require.Equal(t, c.want, s.take(t), "%s %s", c.method, c.path)
	}
	require.Panics(t, func() { do(s.http, http.MethodPost, "/api/orgs?then=abort", as("alice")) })
	require.Equal(t, both(create, http.StatusInternalServerError, ""), s.take(t), "a request that was given up may have changed something")
}

func TestAudit_refusesWhatGivesRightsWhenItFails(t *testing.T) {
	t.Parallel()
	s := newAuditScene()
	s.fails = syscall.ENOSPC
	w := do(s.http, http.MethodPost, "/api/orgs/o/members", as("alice"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "10", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "the audit log of the hub cannot be written")
	require.NotContains(t, w.Body.String(), "no space", "that is for the operator")
	require.Zero(t, s.writes)
	require.Equal(t, http.StatusCreated, do(s.http, http.MethodDelete, "/api/orgs/o/members/bob", as("alice")).Code)
	require.Equal(t, 1, s.writes)
	require.Equal(t, http.StatusOK, do(s.http, http.MethodGet, "/api/orgs/o", as("alice")).Code)
	s.fails = nil
	require.Equal(t, http.StatusCreated, do(s.http, http.MethodPost, "/api/orgs/o/members", as("alice")).Code)
	require.Len(t, s.events, 2)
}

func TestIntend_panicsWithoutAudit(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() {
		_ = httpmw.Intend(httptest.NewRequest(http.MethodPost, "/", http.NoBody), httpmw.Intent{})
	})
}

// A person is named with their session, also if they are refused afterwards. Before the limits of
// the person, their refusals are sampled.
func TestAudit_namesThePersonOfACookie(t *testing.T) {
	t.Parallel()
	l := newPortalLogin()
	var events []audit.Event
	h := audited(func(e audit.Event) error { events = append(events, e); return nil })(l.routes(func(*httpmw.Caller) {}))
	alice := audit.Actor{Kind: audit.ActorPerson, User: "alice", Issuer: "https://idp", Session: "s1", Cookie: true}
	require.Equal(t, http.StatusOK, ask(h, http.MethodPost, "/thing", "Cookie", goodCookie, "Sec-Fetch-Site", "same-origin").Code)
	l.user.Spec.Registration = v1alpha1.RegistrationRejected
	for range 10 {
		require.Equal(t, http.StatusForbidden, ask(h, http.MethodPost, "/thing", "Cookie", goodCookie, "Sec-Fetch-Site", "same-origin").Code)
		require.Equal(t, http.StatusForbidden, ask(h, http.MethodPost, "/thing", "Cookie", goodCookie, "Sec-Fetch-Site", "cross-site").Code)
	}
	require.Len(t, events, 3)
	require.Equal(t, alice, events[0].Actor)
	require.Equal(t, alice, events[1].Actor)
	require.Equal(t, audit.Actor{Kind: audit.ActorAnonymous}, events[2].Actor, "the cookie was not looked at")

	events = nil
	h = audited(func(e audit.Event) error { events = append(events, e); return nil })(newLogin().routes(func(*httpmw.Caller) {}))
	require.Equal(t, http.StatusOK, ask(h, http.MethodPost, "/thing", "Authorization", "Bearer token").Code)
	alice.Cookie = false
	require.Len(t, events, 1)
	require.Equal(t, alice, events[0].Actor, "the token of a session")
}

// The first refusal of a minute is written, for each client, action and code.
func TestRefusals_areSampled(t *testing.T) {
	t.Parallel()
	s := newAuditScene()
	for range 100 {
		require.Equal(t, http.StatusUnauthorized, do(s.http, http.MethodPost, "/api/orgs", as("bad")).Code)
	}
	refused := audit.Event{Stage: audit.StageOutcome, Actor: audit.Actor{Kind: audit.ActorAnonymous}, Action: "refuse POST /api/orgs", Code: http.StatusUnauthorized}
	require.Equal(t, []audit.Event{refused}, s.take(t))
	do(s.http, http.MethodGet, "/api/orgs/o", as("bad"))
	require.Equal(t, "refuse GET /api/orgs/{org}", s.take(t)[0].Action)
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	do(s.http, http.MethodPost, "/api/orgs", as("bad"))
	refused.Suppressed = 99
	require.Equal(t, []audit.Event{refused}, s.take(t))
}

func TestRefusals_rememberALimitedNumber(t *testing.T) {
	t.Parallel()
	s := newAuditScene()
	for i := range 30_000 {
		r := httptest.NewRequest(http.MethodGet, "/api/orgs/o", http.NoBody)
		r.RemoteAddr = "10." + strconv.Itoa(i>>16) + "." + strconv.Itoa(i>>8&255) + "." + strconv.Itoa(i&255) + ":1"
		s.http.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Len(t, s.events, 30_000)
}

func TestMayChange_knowsWhatRunsInKcp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, group, subresource string
		sudo, want                 bool
	}{
		{http.MethodGet, "", "", false, false},
		{http.MethodGet, "", "log", false, false},
		{http.MethodGet, "", "exec", false, true},
		{http.MethodGet, "", "proxy", false, true},
		{http.MethodGet, "", "", true, true},
		{http.MethodPost, "", "", false, true},
		{http.MethodDelete, "", "", false, true},
		{http.MethodPost, "", "token", false, true},
		{http.MethodPost, "authorization.k8s.io", "", false, false},
	} {
		r := httptest.NewRequest(c.method, "/", http.NoBody)
		if c.sudo {
			r.Header.Set("Impersonate-User", "alice")
		}
		info := &request.RequestInfo{APIGroup: c.group, Subresource: c.subresource}
		if c.group != "" {
			info.Verb, info.APIVersion, info.Resource = "create", "v1", "subjectaccessreviews"
		}
		r = r.WithContext(request.WithRequestInfo(r.Context(), info))
		require.Equal(t, c.want, httpmw.MayChange(r), "%+v", c)
	}
}

// kubectl exec needs all of a connection: deadlines, flushes and the connection itself.
func TestAudit_passesUpgradesOn(t *testing.T) {
	t.Parallel()
	events := make(chan audit.Event, 1)
	server := httptest.NewServer(audited(func(e audit.Event) error { events <- e; return nil })(httpmw.Limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		errs := []error{control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})}
		conn, buffered, err := control.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_ = buffered.Flush()
	}))))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusSwitchingProtocols, (<-events).Code)
}
