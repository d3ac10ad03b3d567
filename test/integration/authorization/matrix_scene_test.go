package authorization

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// matrixScene is one cell of the matrix while it is tried: who does it, where, and to
// whom.
type matrixScene struct {
	*matrixWorld
	matrixPlace
	position int
	target   string
}

// names replaces the placeholders of rows.
func (s *matrixScene) names() *strings.Replacer {
	return strings.NewReplacer(
		"{org}", s.org, "{ws}", s.ws, "{cluster}", s.cluster, "{path}", s.path, "{root}", s.root, "{hub}", s.hub.URL,
		"{user}", s.target, "{name}", s.target, "{target}", s.target, "{caller}", matrixPeople[s.position],
	)
}

// call is the request of the row.
func (s *matrixScene) call(r matrixRow, method string) call {
	c := call{Method: method, Header: maps.Clone(r.header)}
	if c.Header == nil {
		c.Header = http.Header{}
	}
	if token := s.tokens[s.position]; token != "" {
		c.Header.Set("Authorization", "Bearer "+token)
	}
	path := r.pattern()
	if prefix, ok := strings.CutSuffix(path, "*"); ok {
		path = prefix + r.rest
	}
	c.Path = s.names().Replace(path + r.query)
	if r.body != "" {
		c.Body = s.names().Replace(r.body)
	}
	if r.tenant() {
		c.Org = s.org
	}
	if r.inWorkspace() {
		c.Workspace = s.ws
	}
	return c
}

// send sends a request and holds every answer to what all of them have in common.
func (s *matrixScene) send(t *testing.T, c call) framework.Answer {
	t.Helper()
	a, err := s.hub.Try(c)
	require.NoError(t, err)
	require.Less(t, a.Code, 500, "%s %s as %s: %s", c.Method, c.Path, matrixPeople[s.position], a.Raw)
	require.NotEmpty(t, a.Header.Get("X-Request-Id"))
	if a.Code == http.StatusUnauthorized {
		require.Equal(t, []string{"Bearer"}, a.Header.Values("WWW-Authenticate"))
	}
	said := string(a.Raw)
	if c.Path == "/api/credentials" && a.Code == http.StatusOK {
		// The one answer that has a token in it has the caller's own.
		said = strings.Replace(said, s.tokens[s.position], "", 1)
	}
	for name, values := range a.Header {
		said += "\n" + name + ": " + strings.Join(values, ", ")
	}
	require.NoError(t, s.withoutTokens(said), "%s %s as %s", c.Method, c.Path, matrixPeople[s.position])
	return a
}

// withoutTokens finds a token in a text, and does not repeat it.
func (w *matrixWorld) withoutTokens(text string) error {
	for _, token := range append([]string{framework.Token("")}, w.tokens[asBotMember:]...) {
		if strings.Contains(text, token) {
			return errors.New("there is a token in it")
		}
	}
	return nil
}

// matrixReasons are what a metav1.Status says beside its code.
var matrixReasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge, http.StatusUnsupportedMediaType: metav1.StatusReasonUnsupportedMediaType,
}

// judge compares an answer with the code of a row.
func (s *matrixScene) judge(t *testing.T, c call, a framework.Answer, want string) {
	t.Helper()
	switch {
	case want == "2xx" && a.Code/100 == 2:
	case want == "204" && a.Code == http.StatusAccepted:
		// A removal that takes its time.
	default:
		require.Equal(t, want, strconv.Itoa(a.Code), "%s %s: %s", c.Method, c.Path, a.Raw)
	}
	if a.Code < 400 || c.Method == http.MethodHead {
		return
	}
	require.Equal(t, "Status", a.Text("kind"), "%s", a.Raw)
	require.Equal(t, string(matrixReasons[a.Code]), a.Text("reason"), "%s", a.Raw)
	require.Equal(t, strconv.Itoa(a.Code), a.Text("code"), "%s", a.Raw)
	require.NotEmpty(t, a.Text("message"))
}

// member tells the keeper's requests about a target where its Memberships are.
func (s *matrixScene) member(inWorkspace bool) (members string, c call) {
	c = call{As: matrixKeeper, Org: s.org}
	members = "/api/orgs/" + s.org
	if inWorkspace {
		c.Workspace = s.ws
		members += "/workspaces/" + s.ws
	}
	return members + "/members", c
}

func (s *matrixScene) join(inWorkspace bool) error {
	members, c := s.member(inWorkspace)
	c.Method, c.Path, c.Body = http.MethodPost, members, map[string]any{"userRef": map[string]string{"name": s.target}, "role": "member"}
	a, err := s.try(c, http.StatusOK, http.StatusCreated, http.StatusConflict)
	if err != nil || a.Code != http.StatusConflict {
		return err
	}
	c.Method, c.Path, c.Body = http.MethodPatch, members+"/"+s.target, `{"role":"member"}`
	_, err = s.try(c, http.StatusOK)
	return err
}

func (s *matrixScene) part(inWorkspace bool) error {
	members, c := s.member(inWorkspace)
	c.Method, c.Path = http.MethodDelete, members+"/"+s.target
	_, err := s.try(c, http.StatusNoContent, http.StatusAccepted, http.StatusNotFound)
	return err
}

func (s *matrixScene) inOrg() error          { return s.join(false) }
func (s *matrixScene) notInOrg() error       { return s.part(false) }
func (s *matrixScene) inWorkspace() error    { return s.join(true) }
func (s *matrixScene) notInWorkspace() error { return s.part(true) }

// seated restores the membership of a caller who left in an earlier run of the cell. Deleted
// callers can neither leave nor be added.
func (s *matrixScene) seated() error {
	if s.position == asDeleted {
		return nil
	}
	return s.seat(s.matrixPlace, s.position)
}

func (s *matrixScene) configMap() error {
	_, err := s.try(call{
		As: matrixPeople[asOrgAdmin], Method: http.MethodPost, Path: s.names().Replace("/clusters/" + matrixConfigMaps),
		Body: s.names().Replace(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{target}"}}`),
	}, http.StatusCreated, http.StatusConflict)
	return err
}

// live and ended bring what can be soft-deleted into one state, whichever it is in.
// What they get where it is in it already is not the matrix's business.
func (s *matrixScene) live(as, path, org, workspace string) error {
	_, err := s.try(call{As: as, Method: http.MethodPost, Path: path + "/undelete", Org: org, Workspace: workspace},
		http.StatusOK, http.StatusAccepted, http.StatusNoContent, http.StatusNotFound, http.StatusConflict)
	return err
}

func (s *matrixScene) ended(as, path, org, workspace string) error {
	_, err := s.try(call{As: as, Method: http.MethodDelete, Path: path, Org: org, Workspace: workspace},
		http.StatusOK, http.StatusAccepted, http.StatusNoContent, http.StatusNotFound, http.StatusConflict)
	return err
}

func (s *matrixScene) liveUser() error {
	return s.live(matrixPeople[asPlatformAdmin], "/api/users/"+s.target, "", "")
}
func (s *matrixScene) deletedUser() error {
	return s.ended(matrixPeople[asPlatformAdmin], "/api/users/"+s.target, "", "")
}
func (s *matrixScene) liveOrg() error    { return s.live(matrixKeeper, "/api/orgs/"+s.org, s.org, "") }
func (s *matrixScene) deletedOrg() error { return s.ended(matrixKeeper, "/api/orgs/"+s.org, s.org, "") }
func (s *matrixScene) liveWorkspace() error {
	return s.live(matrixKeeper, "/api/orgs/"+s.org+"/workspaces/"+s.ws, s.org, s.ws)
}
func (s *matrixScene) deletedWorkspace() error {
	return s.ended(matrixKeeper, "/api/orgs/"+s.org+"/workspaces/"+s.ws, s.org, s.ws)
}
