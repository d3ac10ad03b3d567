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

func askAll(h http.Handler, as, query string, accept ...string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodGet, Path: "/api/admin/usage" + query, Header: http.Header{"Accept": accept}}.Do(h)
}

func TestUsageOfThePlatform_hasAnItemForEachOrg(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	from := b.now.UTC().Add(-30 * 24 * time.Hour).Truncate(24 * time.Hour)
	acme, globex, purged := item(from), item(from), item(from)
	b.orgs = map[string]*usage.Item{apitest.Acme: &acme, apitest.Globex: &globex, apitest.Dev: &purged}
	answer := askAll(b, apitest.Auditor, "")
	require.Equal(t, []string{"", "Acme", "Globex"}, answer.Items(t, "orgDisplayName"))
	require.Equal(t, []usage.Query{usage.OfOrg("all", usage.Span{From: from, To: b.now.UTC()})}, b.asked)
	require.Contains(t, answer.Body, `"org":"`+apitest.Acme+`"`)
	require.Contains(t, answer.Body, `"size":{"members":10,"workspaces":11,"entries":12}`)
	require.Equal(t, []string{apitest.Globex}, askAll(b, apitest.Operator, "?q=glob").Items(t, "org"))
	next, ok := askAll(b, apitest.Auditor, "?limit=1").Object(t, http.StatusOK)["continue"].(string)
	require.True(t, ok)
	require.Equal(t, []string{"Acme"}, askAll(b, apitest.Auditor, "?limit=1&continue="+next).Items(t, "orgDisplayName"))
}

func TestUsageOfThePlatform_ofOneOrgIsThatOfItsAdmins(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	b.items = []usage.Item{item(at)}
	answer := askAll(b, apitest.Auditor, "?org="+apitest.Acme)
	require.Equal(t, []string{"2026-03-01T11:00:00Z"}, answer.Items(t, "to"))
	require.Equal(t, []string{"Acme"}, answer.Items(t, "orgDisplayName"))
	answer = askAll(b, apitest.Auditor, "?org="+apitest.Acme+"&workspace="+apitest.Dev+"&step=day")
	require.Equal(t, []string{apitest.Dev}, answer.Items(t, "workspace"))
	require.NotContains(t, answer.Body, "size")
	org, workspace, _ := b.asked[1].Tenant()
	require.Equal(t, []string{apitest.Acme, apitest.Dev}, []string{org, workspace})
}

func TestUsageOfThePlatform_isCSVWithoutFormulas(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	of := item(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	b.orgs = map[string]*usage.Item{apitest.Acme: &of}
	answer := askAll(b, apitest.Auditor, "?to=2026-03-02T00:00:00Z", "text/csv")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	require.Equal(t, "org,orgDisplayName,workspace,from,to,objects,bytes,requests.read,requests.write,requests.watch,bytesOut,people,bots,streamSeconds,"+
		"size.members,size.workspaces,size.entries\r\n"+
		apitest.Acme+",Acme,,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,1,2,3,4,5,6,8,9,8,10,11,12\r\n", answer.Body)
	askAll(b, apitest.Auditor, "?limit=1", "text/csv").RefusedField(t, "query:limit")
}

func TestUsageOfThePlatform_refusesWhatItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, withRecords)
	for query, field := range map[string]string{
		"?org=acme": "org", "?workspace=" + apitest.Dev: "org", "?org=" + apitest.Acme + "&workspace=dev": "workspace", "?step=hour": "step",
		"?from=yesterday": "from", "?org=" + apitest.Acme + "&step=week": "step",
	} {
		askAll(b, apitest.Auditor, query).RefusedField(t, "query:"+field)
	}
	for _, as := range []string{apitest.Admin, apitest.Member, apitest.Foreigner} {
		askAll(b, as, "").Refused(t, http.StatusForbidden)
	}
	ask(b, apitest.Auditor, "").Refused(t, http.StatusForbidden)
	require.Empty(t, b.asked)
	none := newBed(t, func(*bed) usageapi.Records { return nil })
	require.Contains(t, askAll(none, apitest.Auditor, "").Refused(t, http.StatusNotImplemented).Message, "--database")
}
