package audit_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// rows reads CSV.
func rows(t testing.TB, a apitest.Answer) [][]string {
	t.Helper()
	require.Equal(t, http.StatusOK, a.Code, a.Body)
	require.Equal(t, "text/csv; charset=utf-8; header=present", a.Header.Get("Content-Type"))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(t, `attachment; filename="audit.csv"`, a.Header.Get("Content-Disposition"))
	all, err := csv.NewReader(strings.NewReader(a.Body)).ReadAll()
	require.NoError(t, err)
	return all
}

// No cell is a formula in a spreadsheet, whatever a tenant named something.
func TestExport_asCSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.say(t,
		audit.Event{
			ID: "1", Org: apitest.Acme, Workspace: apitest.Dev, Stage: audit.StageOutcome, Peer: "192.0.2.7", Code: 201, Action: "POST", Cluster: "+c",
			Actor:  audit.Actor{Kind: audit.ActorBot, Bot: "@ci", Token: "-t"},
			Object: `=HYPERLINK("https://evil.example.com","a,b")` + "\r\n=1", Facts: &audit.Facts{Slug: `=1,"2`}, Resource: &audit.Resource{Verb: "create"},
		},
		audit.Event{ID: "2", Org: apitest.Acme, Stage: audit.StageIntent, Action: "\tx", Actor: audit.Actor{Kind: audit.ActorHub}},
		audit.Event{ID: "3", Org: apitest.Globex})
	all := rows(t, ask(b, apitest.Admin, "", "text/csv"))
	require.Equal(t, "id time stage action actor.kind actor.user actor.bot actor.token workspace cluster object code facts resource", strings.Join(all[0], " "))
	require.Len(t, all, 3)
	_, err := time.Parse(time.RFC3339Nano, all[2][1])
	require.NoError(t, err)
	all[1][1], all[2][1] = "", ""
	require.Equal(t, []string{"2", "", "intent", "'\tx", "hub", "", "", "", "", "", "", "", "", ""}, all[1])
	require.Equal(t, []string{
		"1", "", "outcome", "POST", "bot", "", "'@ci", "'-t", apitest.Dev, "'+c", `'=HYPERLINK("https://evil.example.com","a,b")` + "\n'=1", "201",
		`{"slug":"=1,\"2"}`, `{"verb":"create"}`,
	}, all[2])
	require.Len(t, rows(t, ask(b, apitest.Admin, "?code=5xx", "text/csv")), 1)
}

func TestExport_asNDJSONHasTheEventsOfTheList(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.say(t, numbered(apitest.Acme, 3)...)
	var list struct{ Items []json.RawMessage }
	ask(b, apitest.Admin, "").Into(t, http.StatusOK, &list)
	answer := ask(b, apitest.Admin, "", "application/x-ndjson")
	require.Equal(t, "application/x-ndjson", answer.Header.Get("Content-Type"))
	lines := strings.Split(strings.TrimSuffix(answer.Body, "\n"), "\n")
	require.Len(t, lines, len(list.Items))
	for i, line := range lines {
		require.JSONEq(t, string(list.Items[i]), line)
	}
}

func TestExport_isWhatTheClientPrefers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/html, text/csv;q=0.9": "text/csv",
		"text/csv, application/json": "text/csv", "application/json, text/csv": "application/json",
		"text/csv;q=0.1, application/x-ndjson;q=0.2": "application/x-ndjson", "text/csv;q=0": "application/json",
		"text/*": "application/json", ";;": "application/json",
	} {
		got, _, _ := strings.Cut(ask(b, apitest.Admin, "", accept).Header.Get("Content-Type"), ";")
		require.Equal(t, want, got, accept)
	}
	for _, parameter := range []string{"limit", "continue"} {
		ask(b, apitest.Admin, "?"+parameter+"=1", "text/csv").RefusedField(t, "query:"+parameter)
	}
	for _, as := range []string{apitest.WSMember, apitest.WSAdmin, apitest.Foreigner} {
		ask(b, as, "", "text/csv").Refused(t, http.StatusForbidden)
	}
}

// An export has all pages, and never more than one of them in memory.
func TestExport_readsPageByPage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.say(t, numbered(apitest.Acme, 1200)...)
	b.turned = func(q audit.Query) { require.Equal(t, 500, q.Limit) }
	all := rows(t, ask(b, apitest.Admin, "", "text/csv"))[1:]
	n := len(all)
	require.Equal(t, 1200, n)
	for i, row := range all {
		require.Equal(t, strconv.Itoa(1199-i), row[0])
	}
	require.Equal(t, 3, b.pages)
	require.Equal(t, 1, b.awaited)
}

// An answer that is not whole must not look like one that is.
func TestExport_isCutOffWhereItFails(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(b *bed){
		"the database is down": func(b *bed) { b.failing = errors.New("down") },
		"a right is taken":     func(b *bed) { b.world.Leave(apitest.Admin, apitest.Acme, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.say(t, numbered(apitest.Acme, 600)...)
			b.turned = func(audit.Query) { happens(b) }
			require.PanicsWithValue(t, http.ErrAbortHandler, func() { ask(b, apitest.Admin, "", "text/csv") })
			require.Equal(t, 1, b.pages)
		})
	}
}
