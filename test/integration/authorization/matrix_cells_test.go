package authorization

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

func TestMatrix_givesEachCallerItsCode(t *testing.T) {
	t.Parallel()
	w := newMatrixWorld(t)
	t.Run("all", func(t *testing.T) {
		t.Run("everybody gets what the matrix says", w.cells)
		t.Run("the tenant headers agree with the path", w.tenantHeaders)
		t.Run("nobody comes in with a doubtful Authorization", w.authorizations)
		t.Run("a path has no other methods", w.otherMethods)
		t.Run("strangers cannot tell what exists", w.foreignAndMissing)
		t.Run("the refused cannot tell who exists", w.targets)
		t.Run("what is soft-deleted is not found", w.softDeleted)
		t.Run("people delete and undelete themselves", w.oneself)
		t.Run("attacks", w.attacks)
	})
	logged := w.hub.Log.String()
	require.NoError(t, w.withoutTokens(logged), "the hub's log")
	w.events(t)
	metrics, err := (&framework.Client{URL: w.hub.Metrics, HTTP: http.DefaultClient}).Try(call{Method: http.MethodGet})
	require.NoError(t, err)
	require.Contains(t, string(metrics.Raw), "kedge_http_requests_total")
	require.NoError(t, w.withoutTokens(string(metrics.Raw)), "the hub's metrics")
	require.NoError(t, framework.UndocumentedMetrics("../../../pkg/metrics/doc.go", metrics.Raw))
}

// needsTarget reports whether the row acts on a user other than the caller.
func (r matrixRow) needsTarget() bool {
	for _, placeholder := range []string{"{user}", "{name}", "{target}"} {
		if strings.Contains(r.pattern()+r.rest+r.body, placeholder) {
			return true
		}
	}
	return false
}

func (w *matrixWorld) cells(t *testing.T) {
	t.Parallel()
	for _, r := range matrixRows {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			s := &matrixScene{matrixWorld: w, matrixPlace: w.places[r.at]}
			if r.needsTarget() {
				s.target = w.somebody(t)
			}
			for _, route := range r.routes(server.Routes()) {
				for s.position = range matrixPositions {
					t.Run(route.Method+" as "+matrixPositionNames[s.position], func(t *testing.T) { s.cell(t, r, route.Method) })
				}
			}
		})
	}
}

// matrixStates maps callers with an unusable account to the text that every 403 contains.
var matrixStates = map[int]string{asPending: "approval", asRejected: "rejected (no guests)", asDeleted: "this account was deleted"}

func (s *matrixScene) cell(t *testing.T, r matrixRow, method string) {
	t.Helper()
	if r.before != nil {
		require.NoError(t, r.before(s))
	}
	c := s.call(r, method)
	a := s.send(t, c)
	s.judge(t, c, a, r.want(s.position))
	s.remember(r, method, a)
	s.readsBack(t, r, method, a)
	if state := matrixStates[s.position]; state != "" && a.Code == http.StatusForbidden && method != http.MethodHead {
		require.Contains(t, a.Text("message"), state)
	}
	if method == http.MethodHead {
		require.Empty(t, a.Raw)
		return
	}
	if r.check != nil && a.Code < 300 {
		r.check(s, t, a)
	}
}

func (s *matrixScene) isCaller(t *testing.T, a framework.Answer) {
	t.Helper()
	if isBot(s.position) {
		require.Equal(t, []string{"Bot", s.bots[s.position-matrixColumns].uuid}, []string{a.Text("kind"), a.Text("uuid")})
		return
	}
	require.Equal(t, matrixPeople[s.position], a.Text("name"))
}

func (s *matrixScene) isOrg(t *testing.T, a framework.Answer) {
	t.Helper()
	require.Equal(t, s.org, a.Text("uuid"))
	require.Equal(t, map[int]string{asOrgMember: "member", asOrgAdmin: "admin", asOrgViewer: "viewer"}[s.position], a.Text("role"))
}

func (s *matrixScene) isWorkspace(t *testing.T, a framework.Answer) {
	t.Helper()
	require.Equal(t, s.ws, a.Text("uuid"))
	roles := map[int]string{
		asWorkspaceMember: "member", asWorkspaceAdmin: "admin", asOrgMember: "viewer", asOrgAdmin: "admin", asWorkspaceViewer: "viewer", asOrgViewer: "viewer",
	}
	require.Equal(t, roles[s.position], a.Text("role"))
}

func (s *matrixScene) holdsOwnToken(t *testing.T, a framework.Answer) {
	t.Helper()
	require.Equal(t, s.token(), a.JSON["status"].(map[string]any)["token"])
}

// listed returns the values of a field from the list items that keep accepts.
func (s *matrixScene) listed(t *testing.T, a framework.Answer, field string, keep func(item map[string]any) bool) []any {
	t.Helper()
	items, ok := a.JSON["items"].([]any)
	require.True(t, ok, "%s", a.Raw)
	found := []any{}
	for _, i := range items {
		if item := i.(map[string]any); keep(item) {
			found = append(found, item[field])
		}
	}
	return found
}

func (s *matrixScene) hasOwnRowsOnly(t *testing.T, a framework.Answer) {
	t.Helper()
	want := map[int][]any{
		asWorkspaceMember: {s.ws}, asWorkspaceAdmin: {s.ws}, asOrgMember: {nil}, asOrgAdmin: {nil}, asWorkspaceViewer: {s.ws}, asOrgViewer: {nil}, asWorkspaceManager: {s.ws},
	}[s.position]
	require.ElementsMatch(t, want, s.listed(t, a, "workspaceUUID", func(i map[string]any) bool { return i["orgUUID"] == s.org }))
}

func (s *matrixScene) listsOwnOrgsOnly(t *testing.T, a framework.Answer) {
	t.Helper()
	want := map[int][]any{asOrgMember: {"member"}, asOrgAdmin: {"admin"}, asOrgViewer: {"viewer"}}[s.position]
	require.ElementsMatch(t, want, s.listed(t, a, "role", func(i map[string]any) bool { return i["uuid"] == s.org }))
}

func (s *matrixScene) listsOwnWorkspacesOnly(t *testing.T, a framework.Answer) {
	t.Helper()
	all := []any{s.ws}
	if s.other != "" {
		all = append(all, s.other)
	}
	want := map[int][]any{
		asWorkspaceMember: {s.ws}, asWorkspaceAdmin: {s.ws}, asOrgAdmin: all, asWorkspaceViewer: {s.ws}, asWorkspaceManager: {s.ws},
	}[s.position]
	require.ElementsMatch(t, want, s.listed(t, a, "uuid", func(map[string]any) bool { return true }))
}

func (s *matrixScene) listsNothing(t *testing.T, a framework.Answer) {
	t.Helper()
	require.Empty(t, s.listed(t, a, "uuid", func(map[string]any) bool { return true }))
}
