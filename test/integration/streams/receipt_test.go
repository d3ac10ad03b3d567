package streams

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The receipt of an end says how many streams it cut, and since when hub and kcp refuse. The answer has it for
// those who ask, and the audit log always.
func TestReceipt_countsTheStreamsThatAnEndCuts(t *testing.T) {
	t.Parallel()
	var data string
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { data = o.DataDir })
	framework.SignUp(t, hub, "alice", "bob", "carol")
	org := hub.CreateOrg(t, "alice", "ACME")
	here, there := hub.CreateWorkspace(t, "alice", org, "dev"), hub.CreateWorkspace(t, "alice", org, "prod")
	at := func(method, below string, body any) call {
		return framework.InWorkspace("alice", method, org, here.Text("uuid"), below, body)
	}
	for _, user := range []string{"bob", "carol"} {
		hub.Do(t, at(http.MethodPost, "/members", framework.Adding(user, "admin")), http.StatusCreated)
	}
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, there.Text("uuid"), "/members", framework.Adding("bob", "member")), http.StatusCreated)
	for _, user := range []string{"bob", "carol"} {
		hub.Enters(t, user, here.Text("clusterID"))
	}
	hub.Enters(t, "bob", there.Text("clusterID"))
	var theirs []*stream
	for _, kind := range streamKinds {
		theirs = append(theirs, open(t, hub, kind, "bob", here.Text("clusterID"), configMaps, nil))
	}
	others := []*stream{
		open(t, hub, "h2", "bob", there.Text("clusterID"), configMaps, nil),
		open(t, hub, "h2", "carol", here.Text("clusterID"), configMaps, nil),
	}
	from := newSource(t, here.Text("clusterID"))
	for _, s := range theirs {
		from.follows(t, s)
	}

	end := func(c call, code int) framework.Answer {
		c.Header = http.Header{"Prefer": {"return=representation"}}
		return hub.Do(t, c, code)
	}
	require.Equal(t, http.StatusNotFound, end(at(http.MethodDelete, "/members/nobody", nil), http.StatusNotFound).Code)
	began := time.Now()
	a := end(at(http.MethodDelete, "/members/bob", nil), http.StatusOK)
	require.Equal(t, "return=representation", a.Header.Get("Preference-Applied"))
	var removal rest.Receipt
	require.NoError(t, json.Unmarshal(a.Raw, &removal))
	require.Equal(t, len(theirs), removal.StreamsCut)
	require.True(t, removal.HubRefusedAt.After(began), "%s", a.Raw)
	require.False(t, removal.KCPRefusedAt.Before(*removal.HubRefusedAt), "%s", a.Raw)
	require.True(t, removal.KCPRefusedAt.Before(time.Now()), "%s", a.Raw)
	for _, s := range theirs {
		<-s.ended
	}
	for _, s := range others {
		require.True(t, s.isOpen(), s.name)
	}

	// A demotion: the streams of an admin end, because a member may not have opened them.
	a = end(at(http.MethodPatch, "/members/carol", framework.WithRole("viewer")), http.StatusOK)
	var demoted rest.Member
	require.NoError(t, json.Unmarshal(a.Raw, &demoted))
	require.NotNil(t, demoted.Receipt, "%s", a.Raw)
	require.Equal(t, 1, demoted.Receipt.StreamsCut)
	<-others[1].ended

	bot := hub.Do(t, at(http.MethodPost, "/serviceaccounts", `{"displayName":"CI","role":"member"}`), http.StatusCreated).Text("uuid")
	token := hub.Do(t, at(http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds": 3600}`), http.StatusCreated).Text("token")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/clusters/"+here.Text("clusterID")+configMaps+"?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := hub.HTTP.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	a = end(at(http.MethodDelete, "/serviceaccounts/"+bot+"/tokens", nil), http.StatusOK)
	var revoked rest.Receipt
	require.NoError(t, json.Unmarshal(a.Raw, &revoked))
	require.Equal(t, 1, revoked.StreamsCut)
	require.NotNil(t, revoked.HubRefusedAt)
	require.Nil(t, revoked.KCPRefusedAt, "kcp is not asked about tokens")

	recorded := map[string]rest.Receipt{}
	log, err := os.Open(filepath.Join(data, "audit", "rights.jsonl"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var e audit.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		if e.Facts != nil && e.Facts.Receipt != nil {
			require.Equal(t, audit.StageOutcome, e.Stage)
			recorded[e.Action] = *e.Facts.Receipt
		}
	}
	const workspace = "/api/orgs/{org}/workspaces/{ws}"
	require.Equal(t, map[string]rest.Receipt{
		"DELETE " + workspace + "/members/{user}": removal, "PATCH " + workspace + "/members/{user}": *demoted.Receipt,
		"DELETE " + workspace + "/serviceaccounts/{sa}/tokens": revoked,
	}, recorded)
}
