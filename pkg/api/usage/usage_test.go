package usage_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	usageapi "github.com/faroshq/kedge-hub/pkg/api/usage"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/usage"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	path  = "/api/orgs/" + apitest.Acme + "/usage"
	inDev = "/api/orgs/" + apitest.Acme + "/workspaces/" + apitest.Dev + "/usage"
)

// bed is a hub with records that the test says.
type bed struct {
	http.Handler
	items   []usage.Item
	orgs    map[string]*usage.Item
	billing []usage.Billed
	failing error
	asked   []usage.Query
	// askedBilling are the queries of billing.
	askedBilling []usage.BillingQuery
	now          time.Time
}

func (b *bed) Usage(_ context.Context, q usage.Query) ([]usage.Item, error) {
	b.asked = append(b.asked, q)
	return b.items, b.failing
}

func (b *bed) UsageOfOrgs(_ context.Context, from, to time.Time) (map[string]*usage.Item, error) {
	b.asked = append(b.asked, usage.OfOrg("all", usage.Span{From: from, To: to}))
	return b.orgs, b.failing
}

func (b *bed) Billed(_ context.Context, q usage.BillingQuery) ([]usage.Billed, *usage.BillingPosition, error) {
	b.askedBilling = append(b.askedBilling, q)
	all := b.billing
	if q.After != nil {
		all = all[1:]
	}
	if len(all) <= q.Limit {
		return all, nil, b.failing
	}
	last := all[q.Limit-1]
	return all[:q.Limit], &usage.BillingPosition{From: last.From, ID: last.ID}, b.failing
}

func (b *bed) UsageFreshness(context.Context) ([]audit.Freshness, error) {
	return []audit.Freshness{{Replica: "ONE", AsOf: b.now.Add(-70 * time.Second)}}, b.failing
}

func newBed(t testing.TB, records func(*bed) usageapi.Records) *bed {
	t.Helper()
	limits, err := httpmw.NewLimits(clocktesting.NewFakePassiveClock(apitest.Now()), prometheus.NewRegistry())
	require.NoError(t, err)
	b, w := &bed{}, apitest.NewWorld()
	w.PutUser(apitest.Person(apitest.Auditor))
	h := &usageapi.Handler{Records: records(b), LimitReads: limits.PerPerson("audit_reads_per_person", 2), Deps: w.Deps(t, nil, "")}
	b.now = h.Clock.Now()
	b.Handler = apitest.Router(w, func(r chi.Router) { h.Mount(r) })
	return b
}

func withRecords(b *bed) usageapi.Records { return b }

func ask(h http.Handler, as, query string, accept ...string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path + query, Org: apitest.Acme, Header: http.Header{"Accept": accept}}.Do(h)
}

func askInDev(h http.Handler, as, query string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: inDev + query, Org: apitest.Acme, Workspace: apitest.Dev}.Do(h)
}

// item is one hour.
func item(from time.Time) usage.Item {
	return usage.Item{
		From: from, Stored: usage.Stored{Objects: 1, Bytes: 2}, Requests: usage.Requests{Reads: 3, Writes: 4, Watches: 5, BytesOut: 6, Streamed: 7600 * time.Millisecond},
		People: 8, Bots: 9, Size: usage.Size{Members: 10, Workspaces: 11, Entries: 12},
	}
}

func TestList_showsWhatTheTenantUses(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	from := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	b.items = []usage.Item{item(from)}
	want := map[string]any{
		"from": "2026-03-01T10:00:00Z", "to": "2026-03-01T11:00:00Z", "objects": 1.0, "bytes": 2.0,
		"requests": map[string]any{"read": 3.0, "write": 4.0, "watch": 5.0}, "bytesOut": 6.0, "people": 8.0, "bots": 9.0, "streamSeconds": 8.0,
	}
	answer := askInDev(b, apitest.WSAdmin, "").Object(t, http.StatusOK)
	require.Equal(t, []any{want}, answer["items"])
	want["size"] = map[string]any{"members": 10.0, "workspaces": 11.0, "entries": 12.0}
	answer = ask(b, apitest.Admin, "").Object(t, http.StatusOK)
	require.Equal(t, []any{want}, answer["items"])
	require.Empty(t, answer["continue"])
	require.Equal(t, 70.0, answer["replicas"].([]any)[0].(map[string]any)["behindSeconds"])
	want["to"] = "2026-03-02T10:00:00Z"
	require.Equal(t, []any{want}, ask(b, apitest.Admin, "?step=day").Object(t, http.StatusOK)["items"])
	b.items = nil
	require.Equal(t, []any{}, ask(b, apitest.Admin, "").Object(t, http.StatusOK)["items"])
}

// The tenant is that of the path, which the scope has checked.
func TestList_asksForTheTenantOfThePath(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	now := b.now.UTC()
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed.UTC()
	}
	for query, want := range map[string]usage.Span{
		"":          {From: now.Add(-24 * time.Hour).Truncate(time.Hour), To: now, Step: usage.Hour},
		"?step=day": {From: now.Add(-30 * 24 * time.Hour).Truncate(24 * time.Hour), To: now, Step: usage.Day},
		"?from=2026-03-01T12:34:56%2B01:00&to=2026-03-02T00:00:00Z": {From: at("2026-03-01T11:00:00Z"), To: at("2026-03-02T00:00:00Z"), Step: usage.Hour},
		"?to=2026-03-02T00:00:00Z&step=day":                         {From: at("2026-01-31T00:00:00Z"), To: at("2026-03-02T00:00:00Z"), Step: usage.Day},
	} {
		b.asked = nil
		ask(b, apitest.Admin, query).Object(t, http.StatusOK)
		askInDev(b, apitest.Admin, query).Object(t, http.StatusOK)
		require.Equal(t, []usage.Query{usage.OfOrg(apitest.Acme, want), usage.OfWorkspace(apitest.Acme, apitest.Dev, want)}, b.asked, query)
	}
}

func TestList_isForAdmins(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	for _, as := range []string{apitest.Member, apitest.WSAdmin, apitest.Foreigner} {
		ask(b, as, "").Refused(t, http.StatusForbidden)
	}
	askInDev(b, apitest.Member, "").Refused(t, http.StatusForbidden)
	askInDev(b, apitest.Foreigner, "").Refused(t, http.StatusForbidden)
	require.Empty(t, b.asked)
	askInDev(b, apitest.WSAdmin, "").Object(t, http.StatusOK)
}

func TestList_namesTheParameterAtFault(t *testing.T) {
	t.Parallel()
	for query, field := range map[string]string{
		"?step=week": "step", "?step=hour&step=hour": "step", "?step=%00": "step", "?from=yesterday": "from", "?to=1": "to",
		"?from=2026-03-01T00:00:00Z&to=2026-03-01T00:00:00Z": "to", "?from=2099-03-01T00:00:00Z": "to",
		"?from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z":          "from",
		"?from=2020-01-01T00:00:00Z&to=2026-03-01T00:00:00Z&step=day": "from",
		"?from=" + url.QueryEscape("1970-01-01T00:00:00Z' OR 1=1 --"): "from",
	} {
		b := newBed(t, withRecords)
		ask(b, apitest.Admin, query).RefusedField(t, "query:"+field)
		require.Empty(t, b.asked, query)
	}
}

func TestList_isCSVForWhoPrefersIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	b.items = []usage.Item{item(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))}
	answer := ask(b, apitest.Admin, "", "text/csv, application/json;q=0.5")
	require.Equal(t, http.StatusOK, answer.Code)
	require.Equal(t, "from,to,objects,bytes,requests.read,requests.write,requests.watch,bytesOut,people,bots,streamSeconds,size.members,size.workspaces,size.entries\r\n"+
		"2026-03-01T10:00:00Z,2026-03-01T11:00:00Z,1,2,3,4,5,6,8,9,8,10,11,12\r\n", answer.Body)
	require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	ask(b, apitest.Admin, "", "application/json, text/csv;q=0.5").Object(t, http.StatusOK)
}

func TestList_isLimited(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	for range 20 {
		ask(b, apitest.Admin, "").Object(t, http.StatusOK)
	}
	ask(b, apitest.Admin, "").Refused(t, http.StatusTooManyRequests)
	askInDev(b, apitest.Admin, "").Refused(t, http.StatusTooManyRequests)
}

func TestList_withoutADatabaseNamesTheFlag(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(*bed) usageapi.Records { return nil })
	require.Contains(t, ask(b, apitest.Admin, "").Refused(t, http.StatusNotImplemented).Message, "--database")
	ask(b, apitest.Member, "").Refused(t, http.StatusForbidden)
	b = newBed(t, withRecords)
	b.failing = errs.Wrap(errs.Unavailable, errors.New("dial tcp 192.0.2.1:5432: connection refused"), "the records database does not answer")
	require.NotContains(t, ask(b, apitest.Admin, "").Refused(t, http.StatusServiceUnavailable).Message, "192.0.2.1")
}
