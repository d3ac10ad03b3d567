package httpmw_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A tenant who writes without end fills no log, and no intent that is in it lacks its outcome: the budget
// decides about both, also when the minute ends between them.
func TestAudit_aFloodOfWritesHasOneEvent(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	l, clock := audit.New(t.Context(), &written), clocktesting.NewFakeClock(time.Unix(1_000, 0))
	a := httpmw.NewAuditor(l.Write, clock, nil, nil, audit.NewBudget(2, clock, l))
	entry := tenancy.Entry{Workspace: tenancy.Workspace{OrgUUID: "o", UUID: "w", ClusterID: "c"}}
	h := behindObserve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", Resource: "configmaps"}
		httpmw.Limited(a.Audit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := httpmw.IntendProxied(r, entry, false); err != nil {
				t.Error(err)
			}
			if r.URL.Query().Has("slow") {
				clock.Step(time.Minute)
			}
			w.WriteHeader(http.StatusCreated)
		}))).ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	}))
	send := func(query string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/clusters/c/api/v1/configmaps"+query, nil))
	}
	for range 50 {
		send("")
	}
	send("?slow")
	send("")
	text := written.String()
	require.Equal(t, 3, strings.Count(text, `"stage":"intent"`))
	require.Equal(t, 3, strings.Count(text, `"action":"kubernetes create"`)-3, "each with its outcome")
	require.Equal(t, 1, strings.Count(text, `"action":"kubernetes writes"`))
	require.Contains(t, text, `"suppressed":49,"facts":{"counts":{"create configmaps":49}}`)
}

// A person who sends requests that are refused pushes nothing out of the log, whichever Organizations they name: such
// requests are not in the file of rights, and above a budget they are a number. What others send, and what is
// carried out, has its events.
func TestAudit_aFloodOfRefusedRequestsHasOneEvent(t *testing.T) {
	t.Parallel()
	o := audit.Options{File: filepath.Join(t.TempDir(), "rights.jsonl"), MaxSize: 1}
	l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	clock := clocktesting.NewFakeClock(time.Unix(1_000, 0))
	budget := audit.NewBudget(20, clock, l)
	a := httpmw.NewAuditor(l.Write, clock, nil, nil, budget)
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, true, nil
	})
	r := chi.NewRouter()
	r.Use(behindObserve, a.Refusals, a.Audit, httpmw.Authenticate(authentication(tokens, everybody{}, nil)), httpmw.Limited)
	r.Patch("/api/orgs/{org}", httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error {
		switch r.URL.Query().Get("then") {
		case "refuse":
			return errs.New(errs.Forbidden, "no")
		case "fail":
			return errs.New(errs.Unavailable, "not now")
		case "nothing":
			return nil
		}
		return httpmw.Intend(r, httpmw.Intent{})
	}))
	for i := range 500 {
		do(r, http.MethodPatch, "/api/orgs/"+strconv.Itoa(i)+"?then="+[]string{"refuse", "fail", "nothing"}[min(i%4, 2)], as("alice"))
	}
	do(r, http.MethodPatch, "/api/orgs/o", as("alice"))
	do(r, http.MethodPatch, "/api/orgs/o?then=refuse", as("bob"))
	clock.Step(time.Minute)
	do(r, http.MethodPatch, "/api/orgs/o?then=nothing", as("alice"))

	said := func(file string) (all []string) {
		require.NoError(t, audit.Lines(file, 0, func(l audit.Line) bool {
			require.True(t, l.OK)
			e := l.Event
			all = append(all, strings.Join([]string{string(e.Stage), e.Action, e.Actor.User, e.Object, strconv.Itoa(e.Code)}, " "))
			if l.Event.Suppressed > 0 {
				require.Equal(t, 498, l.Event.Suppressed)
				require.Equal(t, map[string]int{"PATCH /api/orgs/{org}": 498}, l.Event.Facts.Counts)
			}
			return true
		}))
		return all
	}
	paths := l.Paths()
	slices.Sort(paths)
	require.Equal(t, []string{
		"intent PATCH /api/orgs/{org} alice  0", "outcome PATCH /api/orgs/{org} alice  200",
	}, said(paths[0]), "the rights: a change")
	require.Equal(t, []string{
		"outcome PATCH /api/orgs/{org} alice  403", "outcome PATCH /api/orgs/{org} alice  503",
		"outcome PATCH /api/orgs/{org} bob  403", "outcome unchanged requests  alice 0", "outcome PATCH /api/orgs/{org} alice  200",
	}, said(paths[1]))
	require.Equal(t, 498.0, testutil.ToFloat64(budget.Counted()))
}

// The jobs that a bot lets in by no rule can be refused without end. Those of one bot leave the budget of another alone.
func TestRecord_aFloodOfRefusedJobsIsInTheBudgetOfTheirBot(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	l, clock := audit.New(t.Context(), &written), clocktesting.NewFakeClock(time.Unix(1_000, 0))
	a := httpmw.NewAuditor(l.Write, clock, nil, nil, audit.NewBudget(20, clock, l))
	record := func(bot string, unchanged bool) {
		require.NoError(t, a.Record(t.Context(), audit.Event{
			Stage: audit.StageOutcome, Code: http.StatusBadRequest, Action: "exchange token", Org: "o", Unchanged: unchanged,
			Actor: audit.Actor{Kind: audit.ActorBot, Bot: bot},
		}))
	}
	for range 50 {
		record("flooder", true)
	}
	record("neighbour", true)
	require.Equal(t, 2, strings.Count(written.String(), `"bot":"flooder"`))
	require.Equal(t, 1, strings.Count(written.String(), `"bot":"neighbour"`))
	record("flooder", false)
	require.Equal(t, 3, strings.Count(written.String(), `"bot":"flooder"`), "what has an intent has its outcome")
}
