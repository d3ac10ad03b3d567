package audit_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	auditapi "github.com/faroshq/kedge-hub/pkg/api/audit"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	path  = "/api/orgs/" + apitest.Acme + "/audit"
	inDev = "/api/orgs/" + apitest.Acme + "/workspaces/" + apitest.Dev + "/audit"
)

// limit is the limit of reads per person.
func limit(t testing.TB) func(http.Handler) http.Handler {
	t.Helper()
	limits, err := httpmw.NewLimits(clocktesting.NewFakePassiveClock(apitest.Now()), prometheus.NewRegistry())
	require.NoError(t, err)
	return limits.PerPerson("audit_reads_per_person", 2)
}

// bed is a hub with an audit log and a database.
type bed struct {
	http.Handler
	*audit.Log
	*records.Reader
	world *apitest.World
	// failing is the error of the database, or nil. turned is called after each page.
	failing error
	turned  func(q audit.Query)
	// pages counts those that were read, and awaited the calls of Await that end in time.
	pages, awaited int
}

// Events implements auditapi.Records.
func (b *bed) Events(ctx context.Context, q audit.Query) (audit.Page, error) {
	if b.failing != nil {
		return audit.Page{}, b.failing
	}
	page, err := b.Reader.Events(ctx, q)
	b.pages++
	if b.turned != nil {
		b.turned(q)
	}
	return page, err
}

func newBed(t testing.TB) *bed {
	t.Helper()
	dir := t.TempDir()
	l, closing, err := audit.Open(t.Context(), audit.Options{File: audit.DefaultFile(dir), MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	db, err := records.Open(records.Options{URL: records.DefaultURL(dir)})
	require.NoError(t, err)
	require.NoError(t, db.Migrate(t.Context()))
	shipper, err := records.NewShipper(db, l, 0, func() error { return nil }, prometheus.NewRegistry())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { shipper.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		closing()
		require.NoError(t, db.Close())
	})
	b := &bed{Log: l, Reader: records.NewReader(db, shipper), world: apitest.NewWorld()}
	h := &auditapi.Handler{Records: b, LimitReads: limit(t), Deps: b.world.Deps(t, nil, "")}
	b.Handler = apitest.Router(b.world, func(r chi.Router) { h.Mount(r) })
	return b
}

// say writes events, and waits until the database has them.
func (b *bed) say(t testing.TB, events ...audit.Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, b.Write(e))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.Reader.Await(ctx)
	require.NoError(t, ctx.Err())
}

// Await implements auditapi.Records.
func (b *bed) Await(ctx context.Context) {
	b.awaited++
	if until, ok := ctx.Deadline(); !ok || time.Until(until) > 2*time.Second {
		b.awaited = -1000
	}
	b.Reader.Await(ctx)
}

// numbered are n events of an Organization with numbers as IDs.
func numbered(org string, n int) (events []audit.Event) {
	for i := range n {
		events = append(events, audit.Event{ID: strconv.Itoa(i), Org: org, Stage: audit.StageOutcome, Action: "x", Actor: audit.Actor{Kind: audit.ActorHub}})
	}
	return events
}

func ask(h http.Handler, as, query string, accept ...string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path + query, Org: apitest.Acme, Header: http.Header{"Accept": accept}}.Do(h)
}

func askInDev(h http.Handler, as, query string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: inDev + query, Org: apitest.Acme, Workspace: apitest.Dev}.Do(h)
}

func TestList_showsWhatAdminsMaySee(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	person := audit.Actor{Kind: audit.ActorPerson, User: "alice", Issuer: "https://idp.example.com", Session: "session", Cookie: true}
	yes := true
	b.say(t,
		audit.Event{
			ID: "1", Stage: audit.StageIntent, Org: apitest.Acme, Actor: person, Peer: "192.0.2.7", Action: "POST /api/orgs/{org}/members", Object: "bob",
			Facts: &audit.Facts{Role: "admin", Sudo: &yes},
		},
		audit.Event{ID: "1", Stage: audit.StageOutcome, Org: apitest.Acme, Actor: person, Action: "POST /api/orgs/{org}/members", Object: "bob", Code: 201},
		audit.Event{ID: "2", Stage: audit.StageOutcome, Org: apitest.Globex, Actor: person, Action: "x", Object: apitest.Acme, Workspace: apitest.Dev},
		audit.Event{
			ID: "3", Stage: audit.StageOutcome, Org: apitest.Acme, Workspace: apitest.Dev, Peer: "192.0.2.7", Action: "kubernetes create", Code: 403,
			Actor:    audit.Actor{Kind: audit.ActorBot, Bot: "ci", Token: "t"},
			Resource: &audit.Resource{Verb: "create", Resource: "configmaps", Namespace: "default"},
		},
		audit.Event{ID: "4", Stage: audit.StageOutcome, Org: apitest.Acme, Workspace: apitest.Dev, Actor: person, Action: "x", Outsider: true},
	)
	answer := ask(b, apitest.Admin, "")
	require.Equal(t, []string{"3", "1", "1"}, answer.Items(t, "id"))
	list := answer.Object(t, http.StatusOK)
	replicas := list["replicas"].([]any)
	require.Len(t, replicas, 1)
	require.Equal(t, b.Heads()[0].Replica, replicas[0].(map[string]any)["replica"])
	for _, hidden := range []string{"idp.example.com", "session", "192.0.2.7", "peer", "outsider"} {
		require.NotContains(t, answer.Body, hidden)
	}
	require.Contains(t, answer.Body, `"facts":{"role":"admin","sudo":true}`)
	require.Contains(t, answer.Body, `"resource":{"verb":"create","resource":"configmaps","namespace":"default"}`)
	for query, want := range map[string][]string{
		"?actor=ci": {"3"}, "?action=members&since=2020-01-01T00:00:00Z": {"1", "1"}, "?until=2020-01-01T00:00:00Z": {},
		"?object=bob": {"1", "1"},
		"?code=201":   {"1"}, "?code=4xx": {"3"}, "?code=5xx": {}, "?workspace=" + apitest.Dev: {"3"}, "?actor=": {"3", "1", "1"},
	} {
		require.Equal(t, want, ask(b, apitest.Admin, query).Items(t, "id"), query)
	}
	for _, as := range []string{apitest.WSAdmin, apitest.Operator, apitest.Foreigner} {
		ask(b, as, "").Refused(t, http.StatusForbidden)
	}
	for _, as := range []string{apitest.Admin, apitest.WSAdmin} {
		answer := askInDev(b, as, "")
		require.Equal(t, []string{"3"}, answer.Items(t, "id"), as)
		require.NotContains(t, answer.Body, "192.0.2.7")
	}
	for _, as := range []string{apitest.Member, apitest.Operator, apitest.Foreigner} {
		askInDev(b, as, "").Refused(t, http.StatusForbidden)
	}
	askInDev(b, apitest.WSAdmin, "?workspace="+apitest.Dev).RefusedField(t, "query:workspace")
}

func TestList_goesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.say(t, numbered(apitest.Acme, 10)...)
	var ids []string
	token := ""
	for {
		answer := ask(b, apitest.Admin, "?limit=3&continue="+url.QueryEscape(token))
		ids = append(ids, answer.Items(t, "id")...)
		if token, _ = answer.Object(t, http.StatusOK)["continue"].(string); token == "" {
			break
		}
	}
	require.Equal(t, []string{"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}, ids)
	require.Equal(t, 1, b.awaited, "the first page waits for new events, and the others have none")
}

// A token is a position in one list. None of these moves it into what another tenant has, or into an error of the
// database.
func TestList_takesNoTokenOfAnotherList(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.say(t, numbered(apitest.Globex, 3)...)
	b.say(t, numbered(apitest.Acme, 10)...)
	token, _ := ask(b, apitest.Admin, "?limit=3").Object(t, http.StatusOK)["continue"].(string)
	require.NotEmpty(t, token)
	require.Equal(t, []string{"6", "5"}, ask(b, apitest.Admin, "?limit=2&continue="+token).Items(t, "id"))
	ask(b, apitest.Admin, "?actor=bob&continue="+token).RefusedField(t, "query:continue")
	askInDev(b, apitest.Admin, "?continue="+token).RefusedField(t, "query:continue")
	other := "/api/orgs/" + apitest.Globex + "/audit?continue=" + token
	apitest.Call{As: apitest.Foreigner, Method: http.MethodGet, Path: other, Org: apitest.Globex}.Do(b).RefusedField(t, "query:continue")
	apitest.Call{As: apitest.Admin, Method: http.MethodGet, Path: other, Org: apitest.Globex}.Do(b).Refused(t, http.StatusForbidden)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	for _, forged := range []string{"x", encode(raw[:20]), encode(append(raw, '1')), token[:len(token)-2] + "AA"} {
		ask(b, apitest.Admin, "?continue="+forged).RefusedField(t, "query:continue")
	}
}

func TestList_namesTheParameterAtFault(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.turned = func(audit.Query) { t.Error("the database was asked") }
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=501": "limit", "?limit=99999999999999999999": "limit", "?limit=1;2": "limit", "?continue=x": "continue",
		"?since=yesterday": "since", "?until=1": "until", "?since=2026-13-01T00:00:00Z": "since", "?since=0000-01-01T00:00:00Z": "since",
		"?since=infinity":                  "since",
		"?until=9999-12-31T23:59:59-14:00": "until", "?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "until", "?since=2026-01-01": "since",
		"?since=2026-01-01T00:00:00Z&since=2026-01-01T00:00:00Z": "since", "?workspace=w": "workspace", "?workspace=%25": "workspace",
		"?actor=a&actor=b": "actor", "?action=a&action=b": "action", "?object=%00": "object", "?actor=%ff": "actor",
		"?action=" + strings.Repeat("a", 513): "action",
		"?code=600":                           "code", "?code=4x": "code", "?code=4XX": "code", "?code=0": "code", "?code=200;DROP": "code", "?code=403&code=404": "code",
	} {
		ask(&freshLimit{b, t}, apitest.Admin, strings.ReplaceAll(query, ";", "%3B")).RefusedField(t, "query:"+field)
	}
}

// A misspelt filter would answer with the events of everybody. Strangers learn nothing from one.
func TestList_refusesAFilterThatIsNotOne(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.turned = func(audit.Query) { t.Error("the database was asked") }
	for query, field := range map[string]string{
		"?actors=bob": "query:actors", "?Actor=bob": "query:Actor", "?q=bob": "query:q",
		"?actor=bob&org=" + apitest.Globex: "query:org", "?actor=bob;x": "query",
	} {
		ask(&freshLimit{b, t}, apitest.Admin, query).RefusedField(t, field)
		refused := ask(&freshLimit{b, t}, apitest.Foreigner, query)
		require.Equal(t, ask(&freshLimit{b, t}, apitest.Foreigner, ""), refused, "of a member of nothing here")
		refused.Refused(t, http.StatusForbidden)
		missing := apitest.Call{As: apitest.Foreigner, Method: http.MethodGet, Org: apitest.Nowhere}
		missing.Path = "/api/orgs/" + apitest.Nowhere + "/audit" + query
		require.Equal(t, refused, missing.Do(&freshLimit{b, t}), "of an organization that does not exist")
		ask(&freshLimit{b, t}, "", query).Refused(t, http.StatusUnauthorized)
	}
}

// freshLimit is a bed in which nobody has read yet.
type freshLimit struct {
	*bed
	t testing.TB
}

func (f *freshLimit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := &auditapi.Handler{Records: f.bed, LimitReads: limit(f.t), Deps: f.world.Deps(f.t, nil, "")}
	apitest.Router(f.world, func(r chi.Router) { h.Mount(r) }).ServeHTTP(w, r)
}

func TestList_isLimited(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for range 20 {
		require.Empty(t, ask(b, apitest.Admin, "").Items(t, "id"))
	}
	ask(b, apitest.Admin, "").Refused(t, http.StatusTooManyRequests)
	askInDev(b, apitest.Admin, "").Refused(t, http.StatusTooManyRequests)
	ask(b, apitest.WSAdmin, "").Refused(t, http.StatusForbidden)
	require.Empty(t, ask(b, apitest.Member, "").Items(t, "id"))
}

func TestList_withoutADatabaseNamesTheFlag(t *testing.T) {
	t.Parallel()
	w := apitest.NewWorld()
	h := apitest.Router(w, func(r chi.Router) {
		(&auditapi.Handler{LimitReads: limit(t), Deps: w.Deps(t, nil, "")}).Mount(r)
	})
	for _, accept := range []string{"application/json", "text/csv"} {
		require.Contains(t, ask(h, apitest.Admin, "", accept).Refused(t, http.StatusNotImplemented).Message, "--database")
	}
	ask(h, apitest.WSAdmin, "").Refused(t, http.StatusForbidden)
	askInDev(h, apitest.WSAdmin, "").Refused(t, http.StatusNotImplemented)
}

func TestList_ofADatabaseThatIsDownIsUnavailable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.failing = errs.Wrap(errs.Unavailable, errors.New("dial tcp 192.0.2.1:5432: connection refused"), "the records database does not answer")
	for _, accept := range []string{"application/json", "text/csv", "application/x-ndjson"} {
		require.NotContains(t, ask(b, apitest.Admin, "", accept).Refused(t, http.StatusServiceUnavailable).Message, "192.0.2.1")
	}
	b.failing = nil
	b.say(t, numbered(apitest.Acme, 1)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeHTTP(w, r.WithContext(ctx)) })
	ask(gone, apitest.Admin, "").Refused(t, http.StatusServiceUnavailable)
}

var _ auditapi.Records = (*bed)(nil)
