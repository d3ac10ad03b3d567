package usage_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	usageapi "github.com/faroshq/kedge-hub/pkg/api/usage"
	"github.com/faroshq/kedge-hub/pkg/usage"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func askBilled(h http.Handler, as, query string, accept ...string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/admin/billing" + query, Header: http.Header{"Accept": accept}}.Do(h)
}

// billedBed is a hub where a Workspace had two cost centers.
func billedBed(t testing.TB) *bed {
	t.Helper()
	b := newBed(t, withRecords)
	from := time.Date(2026, 3, 1, 10, 0, 0, 123000, time.UTC)
	old := usage.Billed{
		ID: "A", Org: apitest.Acme, OrgName: "=Acme", Workspace: apitest.Dev, Name: "Development", Path: "root:dev", CostCenter: "1", Labels: "{}",
		Phase: "Ready", From: from, To: from.Add(time.Hour),
	}
	now := old
	now.ID, now.CostCenter, now.Labels, now.From, now.To = "B", "2", `{"team":"web"}`, old.To, time.Time{}
	b.billing = []usage.Billed{now, old}
	return b
}

func TestBilling_isListedPageByPage(t *testing.T) {
	t.Parallel()
	b := billedBed(t)
	answer := askBilled(b, apitest.Auditor, "?org="+apitest.Acme+"&workspace="+apitest.Dev+"&costCenter=2&from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z")
	require.Equal(t, []string{"2", "1"}, answer.Items(t, "costCenter"))
	require.Contains(t, answer.Body, `"labels":{"team":"web"},"phase":"Ready","from":"2026-03-01T11:00:00.000123Z"}`)
	require.Equal(t, usage.BillingQuery{
		Org: apitest.Acme, Workspace: apitest.Dev, CostCenter: "2", Limit: 100,
		From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
	}, b.askedBilling[0])
	next, ok := askBilled(b, apitest.Operator, "?limit=1").Object(t, http.StatusOK)["continue"].(string)
	require.True(t, ok)
	require.Equal(t, []string{"1"}, askBilled(b, apitest.Operator, "?limit=1&continue="+next).Items(t, "costCenter"))
	require.Equal(t, &usage.BillingPosition{From: b.billing[0].From, ID: "B"}, b.askedBilling[2].After)
}

func TestBilling_isCSVWithoutFormulas(t *testing.T) {
	t.Parallel()
	b := billedBed(t)
	answer := askBilled(b, apitest.Auditor, "", "text/csv")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	require.Equal(t, `attachment; filename="billing.csv"`, answer.Header.Get("Content-Disposition"))
	require.Equal(t, "org,orgDisplayName,workspace,workspaceDisplayName,workspacePath,costCenter,labels,phase,from,to\r\n"+
		apitest.Acme+",'=Acme,"+apitest.Dev+`,Development,root:dev,2,"{""team"":""web""}",Ready,2026-03-01T11:00:00.000123Z,`+"\r\n"+
		apitest.Acme+",'=Acme,"+apitest.Dev+",Development,root:dev,1,,Ready,2026-03-01T10:00:00.000123Z,2026-03-01T11:00:00.000123Z\r\n", answer.Body)
	askBilled(b, apitest.Auditor, "?limit=1", "text/csv").RefusedField(t, "query:limit")
}

func TestBilling_refusesWhatItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := billedBed(t)
	for query, field := range map[string]string{
		"?org=acme": "org", "?workspace=dev": "workspace", "?costCenter=%00": "costCenter", "?from=yesterday": "from", "?limit=0": "limit", "?continue=x": "continue",
		"?from=2026-03-01T00:00:00Z&to=2026-03-01T00:00:00Z": "to",
	} {
		askBilled(b, apitest.Auditor, query).RefusedField(t, "query:"+field)
	}
	for _, as := range []string{apitest.Admin, apitest.Member, apitest.Foreigner} {
		askBilled(b, as, "").Refused(t, http.StatusForbidden)
	}
	require.Empty(t, b.askedBilling)
	none := newBed(t, func(*bed) usageapi.Records { return nil })
	require.Contains(t, askBilled(none, apitest.Auditor, "").Refused(t, http.StatusNotImplemented).Message, "--database")
}
