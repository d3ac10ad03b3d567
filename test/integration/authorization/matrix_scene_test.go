package authorization

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// matrixScene is the context of one cell of the matrix: the caller's position, the Org
// and the Workspace, and the target user.
type matrixScene struct {
	*matrixWorld
	matrixPlace
	position int
	target   string
}

// matrixMissing is a UUID that nothing has. Rows about one bot get no further than its name.
const matrixMissing = "99999999-9999-4999-8999-999999999999"

// names returns a replacer for the placeholders of a row.
func (s *matrixScene) names() *strings.Replacer {
	return strings.NewReplacer(
		"{org}", s.org, "{ws}", s.ws, "{cluster}", s.cluster, "{path}", s.path, "{root}", s.root, "{hub}", s.hub.URL,
		"{user}", s.target, "{name}", s.target, "{target}", s.target, "{caller}", matrixPeople[s.position],
		"{sa}", matrixMissing, "{token}", matrixMissing, "{session}", matrixMissing, "{entry}", matrixMissing, "{invitation}", matrixMissing,
		"{request}", matrixMissing, "{mapping}", matrixMissing,
	)
}

// token is the token of the caller. A bot is of the Workspace of the scene.
func (s *matrixScene) token() string {
	switch {
	case !isBot(s.position):
		return s.tokens[s.position]
	case s.ws == "":
		return s.places[""].bots[s.position-matrixColumns].token
	}
	return s.bots[s.position-matrixColumns].token
}

// call builds the request of a row.
func (s *matrixScene) call(r matrixRow, method string) call {
	c := call{Method: method, Header: http.Header{}}
	for name, values := range r.header {
		for _, value := range values {
			c.Header.Add(name, s.names().Replace(value))
		}
	}
	if token := s.token(); token != "" {
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

// send sends a request and checks the rules for every answer: no 5xx, a request ID, and
// no token.
func (s *matrixScene) send(t *testing.T, c call) framework.Answer {
	t.Helper()
	return s.sendBy(t, s.hub.Client, c)
}

// sendBy is send with another client.
func (s *matrixScene) sendBy(t *testing.T, client *framework.Client, c call) framework.Answer {
	t.Helper()
	a, err := client.Try(c)
	require.NoError(t, err)
	require.Less(t, a.Code, 500, "%s %s as %s: %s", c.Method, c.Path, matrixPeople[s.position], a.Raw)
	require.NotEmpty(t, a.Header.Get("X-Request-Id"))
	if a.Code == http.StatusUnauthorized {
		require.Equal(t, []string{"Bearer"}, a.Header.Values("WWW-Authenticate"))
	}
	said := string(a.Raw)
	if c.Path == "/api/credentials" && a.Code == http.StatusOK {
		// A credential contains the caller's own token. No other answer contains a token.
		said = strings.Replace(said, s.token(), "", 1)
	}
	for name, values := range a.Header {
		said += "\n" + name + ": " + strings.Join(values, ", ")
	}
	require.NoError(t, s.withoutTokens(said), "%s %s as %s", c.Method, c.Path, matrixPeople[s.position])
	return a
}

// withoutTokens returns an error if a text contains a token. The error omits the token,
// so that a failing test does not log it.
func (w *matrixWorld) withoutTokens(text string) error {
	tokens := append([]string{framework.Token("")}, w.tokens[asAccountMember:matrixColumns]...)
	for _, p := range w.places {
		for _, bot := range p.bots {
			tokens = append(tokens, bot.token)
		}
	}
	for _, token := range tokens {
		if strings.Contains(text, token) {
			return errors.New("there is a token in it")
		}
	}
	return nil
}

// matrixReasons maps an HTTP code to the reason in the metav1.Status.
var matrixReasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge, http.StatusUnsupportedMediaType: metav1.StatusReasonUnsupportedMediaType,
}

// judge compares an answer with the wanted code. An error must be a metav1.Status.
func (s *matrixScene) judge(t *testing.T, c call, a framework.Answer, want string) {
	t.Helper()
	switch {
	case want == "2xx" && a.Code/100 == 2:
	case want == "204" && a.Code == http.StatusAccepted:
		// A removal that takes longer continues in the background.
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

// member returns the path of the members, and a request of the keeper with the tenant
// headers for that path.
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

// seated restores the Membership that the caller gave up in an earlier run of the cell.
// A deleted caller can neither leave nor be added.
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

// live undeletes an object and ended soft-deletes it, so that a cell starts from a known
// state. Both accept the refusal for an object that is already in that state.
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
