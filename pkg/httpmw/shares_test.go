package httpmw_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// sharesScene has an API of changes and ends before the smallest files.
type sharesScene struct {
	http   http.Handler
	audit  *httpmw.Auditor
	budget *audit.Budget
	clock  *clocktesting.FakeClock
	paths  []string
}

func newSharesScene(t *testing.T) *sharesScene {
	t.Helper()
	o := audit.Options{File: filepath.Join(t.TempDir(), "rights.jsonl"), MaxSize: 1, MaxBackups: 1}
	l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(closing)
	s := &sharesScene{clock: clocktesting.NewFakeClock(time.Unix(1_000, 0)), paths: l.Paths()}
	s.budget = audit.NewBudget(20, s.clock, l)
	s.audit = httpmw.NewAuditor(l.Write, s.clock, nil, nil, s.budget)
	tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
		return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, true, nil
	})
	// An Intent names the Organization, so that the caller belongs to it.
	serve := func(i httpmw.Intent) http.HandlerFunc {
		return httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error {
			i := i
			i.Org = chi.URLParam(r, "org")
			if err := httpmw.Intend(r, i); err != nil {
				return err
			}
			if !r.URL.Query().Has("nothing") {
				httpmw.BeforeWrite(r.Context())
			}
			return nil
		})
	}
	r := chi.NewRouter()
	r.Use(behindObserve, s.audit.Refusals, s.audit.Audit)
	r.Use(httpmw.Authenticate(authentication(tokens, everybody{}, nil)), httpmw.Limited)
	r.Patch("/api/orgs/{org}", serve(httpmw.Intent{}))
	r.Delete("/api/orgs/{org}", serve(httpmw.Intent{Reduces: true, Facts: audit.Facts{Cascade: true}}))
	s.http = r
	return s
}

// answers sends a request a number of times, and counts the answers by code.
func (s *sharesScene) answers(times int, method, path, user string) map[int]int {
	codes := map[int]int{}
	for range times {
		codes[do(s.http, method, path, as(user)).Code]++
	}
	return codes
}

// events returns the events of a user in one of the chains, of all files.
func (s *sharesScene) events(t *testing.T, chain, user string) (all []audit.Event) {
	t.Helper()
	i := slices.IndexFunc(s.paths, func(path string) bool { return strings.HasPrefix(filepath.Base(path), chain) })
	files, err := audit.Files(s.paths[i])
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, audit.Lines(file, 0, func(l audit.Line) bool {
			if l.Event.Actor.User == user {
				all = append(all, l.Event)
			}
			return true
		}))
	}
	return all
}

// A tenant repeats a change, or changes a setting and changes it back, as often as the hub answers. Nothing that others did
// leaves the files: the tenant is refused, before anything is written.
func TestIntend_aTenantWhoRepeatsAChangePushesNothingOutOfTheRights(t *testing.T) {
	t.Parallel()
	s := newSharesScene(t)
	require.Equal(t, map[int]int{http.StatusOK: 1}, s.answers(1, http.MethodDelete, "/api/orgs/victim", "victim"))
	codes := s.answers(5_000, http.MethodPatch, "/api/orgs/mallory", "mallory")
	require.Positive(t, codes[http.StatusOK])
	require.Equal(t, 5_000, codes[http.StatusOK]+codes[http.StatusTooManyRequests], "%v", codes)
	require.Len(t, s.events(t, "rights", "mallory"), 2*codes[http.StatusOK], "each change that was made has both of its events")
	require.Len(t, s.events(t, "rights", "victim"), 2, "they are still there")
	require.EqualValues(t, codes[http.StatusTooManyRequests], testutil.ToFloat64(s.budget.Refused()))
	refused := do(s.http, http.MethodPatch, "/api/orgs/mallory", as("mallory"))
	require.NotEmpty(t, refused.Header().Get("Retry-After"))
	codes = s.answers(1, http.MethodPatch, "/api/orgs/mallory", "accomplice")
	require.Equal(t, map[int]int{http.StatusTooManyRequests: 1}, codes, "the Organization has a share, too")
	require.Equal(t, map[int]int{http.StatusOK: 1}, s.answers(1, http.MethodPatch, "/api/orgs/victim", "victim"))
	s.clock.Step(time.Hour)
	require.Equal(t, map[int]int{http.StatusOK: 10}, s.answers(10, http.MethodPatch, "/api/orgs/mallory", "mallory"))
}

// A tenant repeats an end. None is refused, those that end something have their events of rights, and the others have none
// above the share: kcp alone knows which is which.
func TestIntend_aTenantWhoRepeatsAnEndPushesNothingOutOfTheRights(t *testing.T) {
	t.Parallel()
	s := newSharesScene(t)
	require.Equal(t, map[int]int{http.StatusOK: 1}, s.answers(1, http.MethodDelete, "/api/orgs/victim", "victim"))
	require.Equal(t, map[int]int{http.StatusOK: 5_000}, s.answers(5_000, http.MethodDelete, "/api/orgs/mallory?nothing", "mallory"))
	before := len(s.events(t, "rights", "mallory"))
	require.Less(t, before, 2_000, "of ten thousand")
	require.Len(t, s.events(t, "rights", "victim"), 2, "they are still there")
	unchanged := s.events(t, "writes", "mallory")
	require.NotEmpty(t, unchanged)
	for _, e := range unchanged {
		require.True(t, e.Unchanged)
	}

	require.Equal(t, map[int]int{http.StatusOK: 1}, s.answers(1, http.MethodDelete, "/api/orgs/mallory", "mallory"))
	ended := s.events(t, "rights", "mallory")[before:]
	require.Len(t, ended, 2)
	for i, stage := range []audit.Stage{audit.StageIntent, audit.StageOutcome} {
		require.Equal(t, stage, ended[i].Stage)
		require.Equal(t, ended[0].ID, ended[i].ID)
		require.Equal(t, "mallory", ended[i].Org)
		require.Equal(t, &audit.Facts{Cascade: true}, ended[i].Facts, "a restore replays it")
		require.False(t, ended[i].Unchanged)
	}
}

// A person logs in and out for ever. What takes rights away is recorded, and no login is.
func TestRecord_aPersonWhoLogsInForEverIsRefused(t *testing.T) {
	t.Parallel()
	s := newSharesScene(t)
	record := func(action string) error {
		return s.audit.Record(t.Context(), audit.Event{
			Stage: audit.StageIntent, Action: action, Actor: audit.Actor{Kind: audit.ActorPerson, User: "mallory"},
		})
	}
	var err error
	for n := 0; err == nil && n < 5_000; n++ {
		err = record("login cli")
	}
	require.True(t, errs.Is(err, errs.TooManyRequests), "%v", err)
	require.True(t, errs.Is(httpmw.NotAudited(err), errs.TooManyRequests))
	require.NoError(t, record("logout cli"))
	require.Error(t, record("confirm device"), "the form of a login can be sent again")
	// A stolen token uses up the share of a person. They can still log in, to end it.
	codes := s.answers(5_000, http.MethodPatch, "/api/orgs/other", "eve")
	require.Positive(t, codes[http.StatusTooManyRequests])
	require.NoError(t, s.audit.Record(t.Context(), audit.Event{
		Stage: audit.StageIntent, Action: "login cli", Actor: audit.Actor{Kind: audit.ActorPerson, User: "eve"},
	}))
}

// Jobs of a tenant choose their sub, and each has a limit of its own.
func TestRecord_aTenantWhoseJobsAskForEverIsRefused(t *testing.T) {
	t.Parallel()
	s := newSharesScene(t)
	var err error
	for n := 0; err == nil && n < 5_000; n++ {
		err = s.audit.Record(t.Context(), audit.Event{
			Stage: audit.StageIntent, Action: "exchange token", Org: "mallory", Actor: audit.Actor{Kind: audit.ActorBot, Bot: "b"},
		})
	}
	require.True(t, errs.Is(err, errs.TooManyRequests), "%v", err)
}
