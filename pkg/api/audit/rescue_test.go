package audit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// A member asks with every filter, in every form, for what admins see.
func TestMember_getsNothingButRescues(t *testing.T) {
	t.Parallel()
	operator := audit.Actor{Kind: audit.ActorPerson, User: apitest.Operator, Session: "session", Issuer: "https://idp.example.com"}
	rescue := audit.Event{
		ID: "rescue", Stage: audit.StageOutcome, Org: apitest.Acme, Actor: operator, Action: audit.ActionRescue, Object: "bob", Code: 201, Peer: "192.0.2.7",
		Facts: &audit.Facts{Role: "admin", Reason: "alice has left"},
	}
	foreign, outside, longer, part, inside := rescue, rescue, rescue, rescue, rescue
	foreign.ID, foreign.Org = "foreign", apitest.Globex
	outside.ID, outside.Outsider = "outside", true
	longer.ID, longer.Action = "longer", audit.ActionRescue+"/x"
	part.ID, part.Action = "part", "/admins"
	inside.ID, inside.Workspace, inside.Action = "inside", apitest.Dev, "kubernetes create"
	queries := []string{
		"", "?actor=" + apitest.Operator, "?action=admins", "?action=kubernetes", "?object=bob", "?code=201", "?code=2xx",
		"?since=2020-01-01T00:00:00Z", "?until=2200-01-01T00:00:00Z", "?action=%27%20OR%20%271%27=%271", "?object=%27%20OR%201=1--", "?actor=%25",
		"?limit=1", "?limit=500", "?action=POST", "?code=4xx",
	}
	b := newBed(t)
	b.world.PutUser(apitest.Person("viola"))
	b.world.Join("viola", apitest.Acme, "", v1alpha1.RoleViewer)
	b.say(t, numbered(apitest.Acme, 20)...)
	b.say(t, rescue, foreign, outside, longer, part, inside)
	for _, query := range queries {
		answer := ask(b, apitest.Member, query)
		for _, id := range answer.Items(t, "id") {
			require.Equal(t, "rescue", id, query)
		}
		require.Empty(t, answer.Object(t, http.StatusOK)["continue"], query)
		for _, hidden := range []string{"192.0.2.7", "session", "idp.example.com", "kubernetes"} {
			require.NotContains(t, answer.Body, hidden)
		}
	}
	require.Equal(t, []string{"rescue"}, ask(b, "viola", "").Items(t, "id"))
	for _, accept := range []string{"text/csv", "application/x-ndjson"} {
		answer := ask(b, "viola", "", accept)
		require.Equal(t, http.StatusOK, answer.Code)
		lines := strings.Split(strings.TrimSpace(answer.Body), "\n")
		require.Contains(t, lines[len(lines)-1], "alice has left")
		require.LessOrEqual(t, len(lines), 2, "the names of the columns, and the rescue")
	}
	askInDev(b, apitest.Member, "").Refused(t, http.StatusForbidden)
	for _, guest := range []string{apitest.WSAdmin, apitest.WSMember} {
		ask(b, guest, "").Refused(t, http.StatusForbidden)
	}
}

// An empty list would say that nothing happened in a Workspace.
func TestMember_isRefusedTheEventsOfAWorkspace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ask(b, apitest.Member, "?workspace="+apitest.Dev).Refused(t, http.StatusForbidden)
	require.Empty(t, ask(b, apitest.Admin, "?workspace="+apitest.Dev).Items(t, "id"))
}

// A token of a list of an admin is a position. It gives a member no other events.
func TestMember_getsNothingByTheTokenOfAnAdmin(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.say(t, numbered(apitest.Acme, 5)...)
	token := ask(b, apitest.Admin, "?limit=1").Object(t, http.StatusOK)["continue"].(string)
	require.Empty(t, ask(b, apitest.Member, "?limit=1&continue="+token).Items(t, "id"))
}

// An admin becomes a member while their export runs, and a member leaves.
func TestExport_endsWithTheRightToRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*apitest.World){
		apitest.Admin:  func(w *apitest.World) { w.Join(apitest.Admin, apitest.Acme, "", v1alpha1.RoleMember) },
		apitest.Member: func(w *apitest.World) { w.Leave(apitest.Member, apitest.Acme, "") },
	} {
		b := newBed(t)
		events := numbered(apitest.Acme, 1100)
		for i := range events {
			events[i].Action = audit.ActionRescue
		}
		b.say(t, events...)
		b.turned = func(audit.Query) { change(b.world) }
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { ask(b, name, "", "application/x-ndjson") }, name)
		require.Equal(t, 1, b.pages, name)
	}
}
