package authorization

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/test/framework"
)

// matrixCauses are the codes that a refusal of somebody with an entry may have as its cause.
var matrixCauses = []any{"RoleTooLow", "NeedsSudo", "SoleAdmin", "QuotaExceeded"}

// hasEntry reports whether the caller of a position has a role in the Organization or the Workspace that a
// row is about.
func (r matrixRow) hasEntry(position int) bool {
	switch {
	case r.inWorkspace():
		return position == asWorkspaceMember || position == asWorkspaceAdmin || position == asWorkspaceViewer || position == asOrgAdmin || position == asWorkspaceManager ||
			r.at == "viewing" && (position == asOrgMember || position == asOrgViewer)
	case r.tenant():
		return position == asOrgMember || position == asOrgViewer || position == asOrgAdmin
	}
	return false
}

// readsBack asks the hub why the cell has its code. It compares the verdict with the code of a request to
// the Workspace, and the causes of a refusal with the codes of what is missing.
func (s *matrixScene) readsBack(t *testing.T, r matrixRow, method string, a framework.Answer) {
	t.Helper()
	if a.Code == http.StatusForbidden && r.hasEntry(s.position) && method != http.MethodHead {
		details, _ := a.JSON["details"].(map[string]any)
		causes, _ := details["causes"].([]any)
		require.NotEmpty(t, causes, "%s", a.Raw)
		require.Contains(t, matrixCauses, causes[0].(map[string]any)["reason"], "%s", a.Raw)
	}
	query, ok := s.question(t, r, method)
	if !ok {
		return
	}
	why := s.hub.Do(t, call{
		As: matrixKeeper, Method: http.MethodGet, Path: "/api/orgs/" + s.org + "/workspaces/" + s.ws + "/why?" + query.Encode(), Org: s.org, Workspace: s.ws,
	}, http.StatusOK)
	require.Equal(t, a.Code != http.StatusForbidden, why.JSON["allowed"], "%d for %s, but %s", a.Code, query.Encode(), why.Raw)
	if a.Code == http.StatusForbidden {
		require.NotEmpty(t, why.JSON["missing"], "%s", why.Raw)
	}
}

// question is the question about the cell. ok is false for one that is about no Workspace, or whose caller is
// neither a person nor a bot of the hub.
func (s *matrixScene) question(t *testing.T, r matrixRow, method string) (query url.Values, ok bool) {
	t.Helper()
	if r.pattern() != "/clusters/*" || len(strings.Fields(r.gets)) == 1 {
		return nil, false
	}
	query = url.Values{}
	switch {
	case isBot(s.position):
		query.Set("bot", s.bots[s.position-matrixColumns].uuid)
	case matrixPeople[s.position] != "":
		query.Set("user", matrixPeople[s.position])
	default:
		return nil, false
	}
	_, path, _ := strings.Cut(s.names().Replace(r.rest), "/")
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(httptest.NewRequest(method, "/"+path, http.NoBody))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"verb": info.Verb, "group": info.APIGroup, "resource": info.Resource, "subresource": info.Subresource, "namespace": info.Namespace, "name": info.Name,
	} {
		query.Set(name, value)
	}
	return query, true
}
