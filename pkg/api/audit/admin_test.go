package audit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func askAll(h http.Handler, as, query string, accept ...string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/admin/audit" + query, Header: http.Header{"Accept": accept}}.Do(h)
}

// auditedBed is a hub with an auditor, and with an event in each of two Organizations and in none.
func auditedBed(t testing.TB) *bed {
	t.Helper()
	b := newBed(t)
	b.world.PutUser(apitest.Person(apitest.Auditor))
	person := audit.Actor{Kind: audit.ActorPerson, User: "alice", Issuer: "https://idp.example.com", Session: "s"}
	b.say(t,
		audit.Event{ID: "1", Stage: audit.StageOutcome, Org: apitest.Acme, Workspace: apitest.Dev, Actor: person, Peer: "192.0.2.7", Action: "x", Code: 200},
		audit.Event{ID: "2", Stage: audit.StageOutcome, Org: apitest.Globex, Actor: person, Action: "=x", Code: 403, Outsider: true},
		audit.Event{ID: "3", Stage: audit.StageOutcome, Actor: audit.Actor{Kind: audit.ActorHub}, Action: "purge", Object: "bob"})
	return b
}

func TestListOfThePlatform_isWholeForAuditors(t *testing.T) {
	t.Parallel()
	b := auditedBed(t)
	for query, want := range map[string][]string{
		"": {"3", "2", "1"}, "?org=" + apitest.Acme: {"1"}, "?workspace=" + apitest.Dev: {"1"}, "?org=" + apitest.Globex + "&workspace=" + apitest.Dev: {},
		"?actor=alice": {"2", "1"}, "?object=bob": {"3"}, "?code=4xx": {"2"},
	} {
		require.Equal(t, want, askAll(b, apitest.Auditor, query).Items(t, "id"), query)
	}
	answer := askAll(b, apitest.Operator, "?org="+apitest.Globex)
	require.Contains(t, answer.Body, `"org":"`+apitest.Globex+`","outsider":true,"issuer":"https://idp.example.com","session":"s"`)
	require.Contains(t, askAll(b, apitest.Auditor, "?org="+apitest.Acme).Body, `"peer":"192.0.2.7"`)
	// It goes on where a page ended.
	first := askAll(b, apitest.Auditor, "?limit=2")
	next, ok := first.Object(t, http.StatusOK)["continue"].(string)
	require.True(t, ok)
	require.Equal(t, []string{"1"}, askAll(b, apitest.Auditor, "?limit=2&continue="+next).Items(t, "id"))
	askAll(b, apitest.Auditor, "?org=acme").RefusedField(t, "query:org")
	askAll(b, apitest.Auditor, "?workspace=dev").RefusedField(t, "query:workspace")
}

func TestListOfThePlatform_isForAuditorsAndPlatformAdmins(t *testing.T) {
	t.Parallel()
	b := auditedBed(t)
	for _, as := range []string{apitest.Admin, apitest.Member, apitest.Foreigner} {
		askAll(b, as, "").Refused(t, http.StatusForbidden)
	}
	// An auditor does not read what is of tenants as one of them.
	ask(b, apitest.Auditor, "").Refused(t, http.StatusForbidden)
}

func TestExportOfThePlatform_hasItsColumns(t *testing.T) {
	t.Parallel()
	b := auditedBed(t)
	all := rows(t, askAll(b, apitest.Auditor, "", "text/csv"))
	require.Len(t, all, 4)
	require.Equal(t, []string{"org", "outsider", "issuer", "session", "peer"}, all[0][14:])
	require.Equal(t, []string{apitest.Globex, "true", "https://idp.example.com", "s", ""}, all[2][14:])
	require.Equal(t, "'=x", all[2][3])
	require.Equal(t, []string{apitest.Acme, "", "https://idp.example.com", "s", "192.0.2.7"}, all[3][14:])
	lines := askAll(b, apitest.Auditor, "", "application/x-ndjson")
	require.Equal(t, http.StatusOK, lines.Code)
	require.Equal(t, 3, strings.Count(lines.Body, "\n"))
	require.Contains(t, lines.Body, `"peer":"192.0.2.7"`)
}
