package audit_test

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	auditapi "github.com/faroshq/kedge-hub/pkg/api/audit"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const path = "/api/orgs/" + apitest.Acme + "/audit"

// limit is the limit of reads per person.
func limit(t testing.TB) func(http.Handler) http.Handler {
	t.Helper()
	limits, err := httpmw.NewLimits(clocktesting.NewFakePassiveClock(apitest.Now()), prometheus.NewRegistry())
	require.NoError(t, err)
	return limits.PerPerson("audit_reads_per_person", 2)
}

// router serves the log of a replica.
func router(t testing.TB, file, replica string) (http.Handler, *audit.Log) {
	t.Helper()
	l, closing, err := audit.Open(t.Context(), audit.Options{File: file, MaxSize: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(closing)
	w := apitest.NewWorld()
	h := &auditapi.Handler{Read: l.Read, Replica: replica, LimitReads: limit(t), Deps: w.Deps(t, nil, "")}
	return apitest.Router(w, func(r chi.Router) { h.Mount(r) }), l
}

func ask(h http.Handler, as, query string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: path + query, Org: apitest.Acme}.Do(h)
}

func TestList_showsWhatAdminsMaySee(t *testing.T) {
	t.Parallel()
	h, l := router(t, filepath.Join(t.TempDir(), "audit.log"), "hub-0")
	person := audit.Actor{Kind: audit.ActorPerson, User: "alice", Issuer: "https://idp.example.com", Session: "session", Cookie: true}
	yes := true
	for _, e := range []audit.Event{
		{ID: "1", Stage: audit.StageIntent, Org: apitest.Acme, Actor: person, Peer: "192.0.2.7", Action: "POST /api/orgs/{org}/members", Object: "bob", Facts: &audit.Facts{Role: "admin", Sudo: &yes}},
		{ID: "1", Stage: audit.StageOutcome, Org: apitest.Acme, Actor: person, Action: "POST /api/orgs/{org}/members", Object: "bob", Code: 201},
		{ID: "2", Stage: audit.StageOutcome, Org: apitest.Globex, Actor: person, Action: "x", Object: apitest.Acme},
		{ID: "3", Stage: audit.StageOutcome, Org: apitest.Acme, Actor: audit.Actor{Kind: audit.ActorBot, Bot: "ci", Token: "t"}, Action: "kubernetes create", Code: 403, Resource: &audit.Resource{Verb: "create", Resource: "configmaps", Namespace: "default"}},
		{ID: "4", Stage: audit.StageOutcome, Org: apitest.Acme, Actor: person, Action: "x", Outsider: true},
	} {
		require.NoError(t, l.Write(e))
	}
	answer := ask(h, apitest.Admin, "")
	require.Equal(t, []string{"3", "1", "1"}, answer.Items(t, "id"))
	require.Equal(t, "hub-0", answer.Object(t, http.StatusOK)["replica"])
	require.NotContains(t, answer.Body, "idp.example.com")
	require.NotContains(t, answer.Body, "session")
	require.Contains(t, answer.Body, `"peer":"192.0.2.7"`)
	require.Contains(t, answer.Body, `"facts":{"role":"admin","sudo":true}`)
	require.Contains(t, answer.Body, `"resource":{"verb":"create","resource":"configmaps","namespace":"default"}`)
	require.Equal(t, []string{"3"}, ask(h, apitest.Admin, "?actor=ci").Items(t, "id"))
	require.Equal(t, []string{"1", "1"}, ask(h, apitest.Admin, "?action=members&since=2020-01-01T00:00:00Z").Items(t, "id"))
	require.Empty(t, ask(h, apitest.Admin, "?until=2020-01-01T00:00:00Z").Items(t, "id"))
	for _, as := range []string{apitest.Member, apitest.WSAdmin, apitest.Operator, apitest.Foreigner} {
		ask(h, as, "").Refused(t, http.StatusForbidden)
	}
}

func TestList_goesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	h, l := router(t, file, "hub-0")
	for i := range 10 {
		require.NoError(t, l.Write(audit.Event{ID: strconv.Itoa(i), Org: apitest.Acme, Stage: audit.StageOutcome, Actor: audit.Actor{Kind: audit.ActorHub}}))
	}
	var ids []string
	token := ""
	for {
		answer := ask(h, apitest.Admin, "?limit=3&continue="+url.QueryEscape(token))
		ids = append(ids, answer.Items(t, "id")...)
		if token, _ = answer.Object(t, http.StatusOK)["continue"].(string); token == "" {
			break
		}
	}
	require.Equal(t, []string{"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}, ids)
	token, _ = ask(h, apitest.Admin, "?limit=3").Object(t, http.StatusOK)["continue"].(string)
	other, _ := router(t, file, "hub-1")
	ask(other, apitest.Admin, "?limit=3&continue="+token).RefusedField(t, "query:continue")
	ask(h, apitest.Admin, "?actor=bob&continue="+token).RefusedField(t, "query:continue")
}

func TestList_isLimited(t *testing.T) {
	t.Parallel()
	h, _ := router(t, filepath.Join(t.TempDir(), "audit.log"), "hub-0")
	for range 20 {
		require.Empty(t, ask(h, apitest.Admin, "").Items(t, "id"))
	}
	ask(h, apitest.Admin, "").Refused(t, http.StatusTooManyRequests)
	ask(h, apitest.Member, "").Refused(t, http.StatusForbidden)
}

func TestList_ofAClientThatWentAwayIsNoFault(t *testing.T) {
	t.Parallel()
	h, l := router(t, filepath.Join(t.TempDir(), "audit.log"), "hub-0")
	require.NoError(t, l.Write(audit.Event{Org: apitest.Acme}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r.WithContext(ctx)) })
	ask(gone, apitest.Admin, "").Refused(t, http.StatusServiceUnavailable)
}

func TestList_namesTheParameterAtFault(t *testing.T) {
	t.Parallel()
	h := apitest.Router(apitest.NewWorld(), func(r chi.Router) {
		(&auditapi.Handler{
			Read: func(context.Context, audit.Query) ([]audit.Event, *audit.Position, error) {
				t.Error("read")
				return nil, nil, nil
			},
			Deps: apitest.NewWorld().Deps(t, nil, ""), LimitReads: limit(t),
		}).Mount(r)
	})
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=501": "limit", "?continue=x": "continue", "?since=yesterday": "since", "?until=1": "until",
		"?workspace=w": "workspace", "?actor=a&actor=b": "actor", "?action=a&action=b": "action", "?since=" + time.Now().Format(time.DateOnly): "since",
	} {
		ask(h, apitest.Admin, query).RefusedField(t, "query:"+field)
	}
}

func TestList_isNotFoundWithoutAFile(t *testing.T) {
	t.Parallel()
	h, _ := router(t, "", "hub-0")
	require.Contains(t, ask(h, apitest.Admin, "").Refused(t, http.StatusNotFound).Message, "--audit-log-file")
}
