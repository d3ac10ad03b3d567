package authorization

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// auditedCell is a request of the matrix that may have changed something.
type auditedCell struct {
	id       string
	row      matrixRow
	method   string
	position int
	code     int
	org      string
	// bot is the UUID of a caller that is a bot.
	bot string
}

// matrixFacts has the facts of the intent of every route that may change something, as the row
// without a name asks for it. "-" stands for a route that has an outcome only, because it stores
// nothing, and "?" for one that no cell of the matrix gets to change anything with: what its
// intents say is in the unit tests of its handler.
var matrixFacts = map[string]string{
	"PATCH /api/users/me":                                                             `{"fields":["displayName"]}`,
	"DELETE /api/users/me/sessions":                                                   `{"all":true}`,
	"DELETE /api/users/me/sessions/{session}":                                         "?",
	"DELETE /api/users/{name}":                                                        `null`,
	"POST /api/users/{name}/undelete":                                                 `null`,
	"PATCH /api/admin/users/{name}":                                                   `{"quota":"7"}`,
	"PATCH /api/admin/orgs/{org}":                                                     `{"quota":"50"}`,
	"DELETE /api/admin/orgs/{org}":                                                    `null`,
	"POST /api/admin/orgs/{org}/undelete":                                             `null`,
	"POST /api/admin/orgs/{org}/admins":                                               "?",
	"DELETE /api/admin/users/{name}/sessions":                                         `{"all":true}`,
	"DELETE /api/admin/users/{name}/sessions/{session}":                               "?",
	"POST /api/credentials":                                                           "-",
	"POST /api/orgs":                                                                  `null`,
	"PATCH /api/orgs/{org}":                                                           `{"fields":["displayName"]}`,
	"DELETE /api/orgs/{org}":                                                          `null`,
	"POST /api/orgs/{org}/undelete":                                                   `null`,
	"POST /api/orgs/{org}/members":                                                    `{"role":"member"}`,
	"PATCH /api/orgs/{org}/members/{user}":                                            `{"role":"admin"}`,
	"DELETE /api/orgs/{org}/members/{user}":                                           `null`,
	"DELETE /api/orgs/{org}/memberships/me":                                           `null`,
	"POST /api/orgs/{org}/invitations":                                                `{"role":"member"}`,
	"DELETE /api/orgs/{org}/invitations/{invitation}":                                 "?",
	"POST /api/orgs/{org}/workspaces/{ws}/invitations":                                `{"role":"member"}`,
	"DELETE /api/orgs/{org}/workspaces/{ws}/invitations/{invitation}":                 "?",
	"POST /api/invitations/{invitation}/accept":                                       "?",
	"POST /api/invitations/{invitation}/decline":                                      "?",
	"POST /api/orgs/{org}/groups":                                                     `{"role":"member","group":"of nobody"}`,
	"DELETE /api/orgs/{org}/groups/{mapping}":                                         "?",
	"POST /api/orgs/{org}/requests":                                                   "?",
	"POST /api/orgs/{org}/requests/{request}/approve":                                 "?",
	"POST /api/orgs/{org}/requests/{request}/deny":                                    "?",
	"POST /api/orgs/{org}/requests/{request}/withdraw":                                "?",
	"POST /api/orgs/{org}/requests/{request}/revoke":                                  "?",
	"POST /api/orgs/{org}/workspaces/{ws}/requests":                                   "?",
	"POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/approve":                 "?",
	"POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/deny":                    "?",
	"POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/withdraw":                "?",
	"POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/revoke":                  "?",
	"POST /api/orgs/{org}/workspaces":                                                 `null`,
	"PATCH /api/orgs/{org}/workspaces/{ws}":                                           `{"fields":["displayName"]}`,
	"DELETE /api/orgs/{org}/workspaces/{ws}":                                          `null`,
	"POST /api/orgs/{org}/workspaces/{ws}/undelete":                                   `null`,
	"POST /api/orgs/{org}/workspaces/{ws}/members":                                    `{"role":"member"}`,
	"PATCH /api/orgs/{org}/workspaces/{ws}/members/{user}":                            `{"role":"admin","sudo":true}`,
	"DELETE /api/orgs/{org}/workspaces/{ws}/members/{user}":                           `null`,
	"DELETE /api/orgs/{org}/workspaces/{ws}/memberships/me":                           `null`,
	"POST /api/orgs/{org}/workspaces/{ws}/providers/{entry}/enable":                   "?",
	"DELETE /api/orgs/{org}/workspaces/{ws}/providers/{entry}/enable":                 "?",
	"POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts":                            `{"role":"member"}`,
	"PATCH /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}":                      "?",
	"DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}":                     "?",
	"POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens":                "?",
	"DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens":              "?",
	"DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens/{token}":      "?",
	"POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/tokens/{token}/rotate": "?",
	"POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/trust":                 "?",
	"DELETE /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{sa}/trust/{trust}":       "?",
	"POST /api/orgs/{org}/catalog":                                                    `{"slug":"of-alice","export":"{path}:widgets.example.org"}`,
	"PUT /api/orgs/{org}/catalog/{entry}":                                             "?",
	"DELETE /api/orgs/{org}/catalog/{entry}":                                          "?",
	"POST /api/admin/catalog":                                                         `{"slug":"of-heidi","export":"{root}:providers:none:widgets.example.org"}`,
	"PUT /api/admin/catalog/{entry}":                                                  "?",
	"DELETE /api/admin/catalog/{entry}":                                               "?",
	"POST /clusters/*":                                                                `null`,
	"PUT /clusters/*":                                                                 `null`,
	"PATCH /clusters/*":                                                               `null`,
	"DELETE /clusters/*":                                                              `null`,
}

// matrixResources are what the rows without a name write to in kcp.
var matrixResources = map[string]audit.Resource{
	"POST /clusters/*":   {Verb: "create", Resource: "configmaps", Namespace: "default"},
	"PUT /clusters/*":    {Verb: "update", Resource: "configmaps", Namespace: "default", Name: "{target}"},
	"PATCH /clusters/*":  {Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "{target}"},
	"DELETE /clusters/*": {Verb: "delete", Resource: "configmaps", Namespace: "default", Name: "{target}"},
}

// writing reports whether a request of the row may change anything.
func (r matrixRow) writing(method string) bool {
	return r.authenticated() && method != http.MethodGet && method != http.MethodHead
}

// remember keeps a request for events.
func (s *matrixScene) remember(r matrixRow, method string, a framework.Answer) {
	if !r.writing(method) {
		return
	}
	if r.about == "" {
		r.body = s.names().Replace(matrixFacts[r.route])
		r.rest = s.target
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	bot := ""
	if isBot(s.position) {
		bot = s.bots[s.position-matrixColumns].uuid
	}
	s.audited = append(s.audited, auditedCell{a.Header.Get("X-Request-Id"), r, method, s.position, a.Code, s.org, bot})
}

// events compares the audit log with the cells: every request that may have changed something has
// an outcome, and an intent before it if it was carried out.
func (w *matrixWorld) events(t *testing.T) {
	for _, r := range matrixRows {
		for _, route := range r.routes(server.Routes()) {
			if r.writing(route.Method) {
				require.Contains(t, matrixFacts, route.Method+" "+route.Pattern, "the audit event of a route")
			}
		}
	}
	raw := framework.AuditText(t, w.auditFile)
	require.NoError(t, w.withoutTokens(string(raw)), "the audit log")
	found := map[string][]audit.Event{}
	for _, e := range framework.AuditEvents(t, w.auditFile) {
		found[e.ID] = append(found[e.ID], e)
	}
	require.NotEmpty(t, w.audited)
	for _, c := range w.audited {
		c.judge(t, found[c.id])
	}
}

func (c auditedCell) judge(t *testing.T, events []audit.Event) {
	t.Helper()
	name := c.method + " " + c.row.pattern() + " " + c.row.about + " as " + matrixPositionNames[c.position]
	proxied := strings.HasPrefix(c.row.pattern(), "/clusters/")
	if c.code == http.StatusUnauthorized || c.code == http.StatusForbidden && (matrixStates[c.position] != "" || c.bot != "" && !proxied) {
		// Refusals before the limits of the caller are sampled.
		require.LessOrEqual(t, len(events), 1, name)
		return
	}
	require.NotEmpty(t, events, name)
	outcome := events[len(events)-1]
	require.Equal(t, audit.StageOutcome, outcome.Stage, name)
	require.Equal(t, c.code, outcome.Code, name)
	require.Equal(t, "127.0.0.1", outcome.Peer, name)
	if c.bot != "" {
		require.Equal(t, audit.Actor{Kind: audit.ActorBot, Bot: c.bot, Token: outcome.Actor.Token}, outcome.Actor, name)
	} else {
		require.Equal(t, audit.Actor{Kind: audit.ActorPerson, User: matrixPeople[c.position], Issuer: "static"}, outcome.Actor, name)
	}
	if !proxied {
		require.Equal(t, c.method+" "+c.row.pattern(), outcome.Action, name)
	} else {
		// A refused write says where it was to go, too.
		require.NotEmpty(t, outcome.Cluster, name)
		require.Equal(t, c.org, outcome.Org, name)
	}
	if c.row.tenant() {
		require.Equal(t, c.org, outcome.Org, name)
	}
	facts := matrixFacts[c.method+" "+c.row.pattern()]
	switch {
	case c.code >= 300 && len(events) == 1:
		return
	case facts == "-":
		require.Len(t, events, 1, name)
		return
	}
	require.Len(t, events, 2, name)
	intent := events[0]
	require.Equal(t, audit.StageIntent, intent.Stage, name)
	require.Zero(t, intent.Code, name)
	require.Equal(t, outcome.Actor, intent.Actor, name)
	require.Equal(t, outcome.Action, intent.Action, name)
	require.False(t, intent.Time.After(outcome.Time), name)
	require.False(t, outcome.Outsider, name)
	require.Equal(t, apitest.WithoutReceipt(outcome.Facts), intent.Facts, name)
	if made := outcome.Resource; made != nil && made.Verb == "create" && intent.Resource != nil && intent.Resource.Name == "" {
		// Only kcp's answer has the name of what was made.
		require.Equal(t, c.code < 300 && c.row.about == "", made.Name != "" && c.row.about == "", name)
		made.Name = intent.Resource.Name
	}
	require.Equal(t, outcome.Resource, intent.Resource, name)
	require.Equal(t, outcome.Cluster, intent.Cluster, name)
	if c.row.about != "" || c.code >= 300 {
		return
	}
	require.NotEqual(t, "?", facts, "%s changes something: say what its intent has", name)
	said, err := json.Marshal(intent.Facts)
	require.NoError(t, err)
	require.JSONEq(t, c.row.body, string(said), name)
	if proxied {
		want := matrixResources[c.row.route]
		want.Name = strings.Replace(want.Name, "{target}", c.row.rest, 1)
		require.Equal(t, &want, intent.Resource, name)
		require.Equal(t, "kubernetes "+want.Verb, intent.Action)
		require.NotEmpty(t, intent.Workspace, name)
	}
}

// isAudited checks that an admin sees nothing but what happened in the Organization, or in its Workspace, and no
// network addresses.
func (s *matrixScene) isAudited(t *testing.T, a framework.Answer) {
	t.Helper()
	items, ok := a.JSON["items"].([]any)
	require.True(t, ok)
	if a.JSON["replicas"] == nil {
		require.Fail(t, "the answer does not say how far behind the replicas are")
	}
	ids := map[string]bool{}
	for _, e := range framework.AuditEvents(t, s.auditFile) {
		if e.Org == s.org && !e.Outsider {
			ids[e.ID] = true
		}
	}
	for _, item := range items {
		e := item.(map[string]any)
		require.Contains(t, ids, e["id"])
		require.NotContains(t, e, "peer")
		if s.position == asOrgMember || s.position == asOrgViewer {
			require.Equal(t, audit.ActionRescue, e["action"], "what all members see")
		}
	}
}
