package bots

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// mint asks kcp for a token as a person, and returns the code and the token.
func (s scene) mint(t testing.TB, as, account string, spec map[string]any) (int, string) {
	t.Helper()
	a := s.hub.Do(t, call{
		As: as, Method: http.MethodPost, Path: "/clusters/" + s.cluster + "/api/v1/namespaces/default/serviceaccounts/" + account + "/token",
		Body: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
	}, http.StatusCreated, http.StatusForbidden, http.StatusNotFound)
	var answer struct{ Status struct{ Token string } }
	require.NoError(t, json.Unmarshal(s.raw(a), &answer))
	return a.Code, answer.Status.Token
}

// raw is the body of an answer, without the status of a refusal, which is a text.
func (scene) raw(a framework.Answer) []byte {
	if a.Code != http.StatusCreated {
		return []byte("{}")
	}
	return a.Raw
}

// alice is an admin of the Workspace: what she cannot do there, nobody can.
func TestBots_nobodyBecomesOneByHand(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	good := s.token(t, bot)
	s.works(t, hub, good.secret)
	audiences := []string{tenancy.BotAudience, "https://kcp.default.svc"}
	bound := func(secret string) map[string]any {
		return map[string]any{"audiences": audiences, "boundObjectRef": map[string]string{"apiVersion": "v1", "kind": "Secret", "name": secret}}
	}
	hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + s.cluster + "/api/v1/namespaces/default/serviceaccounts", Body: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"mine"}}`}, http.StatusCreated)
	hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + s.cluster + "/api/v1/namespaces/default/secrets", Body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"mine"}}`}, http.StatusCreated)

	for what, c := range map[string]struct {
		account string
		spec    map[string]any
		code    int
	}{
		"an account of hers":                       {"mine", map[string]any{}, http.StatusCreated},
		"an account of hers, bound to a Secret":    {"mine", bound("mine"), http.StatusCreated},
		"the bot's account":                        {bot, map[string]any{"audiences": audiences}, http.StatusCreated},
		"the bot's account, with a Secret":         {bot, bound("mine"), http.StatusCreated},
		"the bot's account, with the bot's own":    {bot, bound("kedge-bot-token-" + good.id), http.StatusForbidden},
		"an account of hers, with the bot's own":   {"mine", bound("kedge-bot-token-" + good.id), http.StatusForbidden},
		"the bot's account, with a Secret to come": {bot, bound("kedge-bot-token-" + s.ws), http.StatusForbidden},
	} {
		code, token := s.mint(t, "alice", c.account, c.spec)
		require.Equal(t, c.code, code, what)
		if code == http.StatusCreated {
			a := s.as(t, hub, token, http.MethodGet, configMaps, nil)
			require.Equal(t, http.StatusUnauthorized, a.Code, "%s: %s", what, a.Raw)
			require.Equal(t, []string{"Bearer"}, a.Header.Values("WWW-Authenticate"))
			require.Contains(t, a.Text("message"), "make a bot", what)
		}
	}
	code, _ := s.mint(t, "bob", bot, map[string]any{})
	require.Equal(t, http.StatusForbidden, code, "members mint nothing")

	// What belongs to a bot is the hub's: neither altered nor removed, and not made.
	secret := "/api/v1/namespaces/default/secrets/kedge-bot-token-" + good.id
	for what, c := range map[string]call{
		"a removal of the account":   {Method: http.MethodDelete, Path: "/api/v1/namespaces/default/serviceaccounts/" + bot},
		"a removal of the Secret":    {Method: http.MethodDelete, Path: secret},
		"a label taken off":          {Method: http.MethodPatch, Path: secret, Body: `{"metadata":{"labels":null}}`, Header: http.Header{"Content-Type": {"application/merge-patch+json"}}},
		"a binding to more":          {Method: http.MethodDelete, Path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + tenancy.BotBinding(s.inKCP(t, bot), "").Name},
		"an account with its labels": {Method: http.MethodPost, Path: "/api/v1/namespaces/default/serviceaccounts", Body: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"forged","labels":{"tenancy.kedge.faros.sh/kedge-sa":"true"}}}`},
		"a token that never expires": {Method: http.MethodPost, Path: "/api/v1/namespaces/default/secrets", Body: `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"legacy","annotations":{"kubernetes.io/service-account.name":"` + bot + `"}}}`},
	} {
		c.As, c.Path = "alice", "/clusters/"+s.cluster+c.Path
		a := hub.Do(t, c, http.StatusForbidden)
		require.NotEmpty(t, a.Text("message"), what)
	}
	s.works(t, hub, good.secret)
}

func TestBots_stayInTheirWorkspace(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	other := hub.CreateWorkspace(t, "alice", s.org, "Other")
	bot := s.bot(t, "admin")
	secret := s.token(t, bot).secret
	s.works(t, hub, secret)
	orgCluster, err := s.Workspaces(s.OrgsPath()).Get(t.Context(), s.org, getOptions())
	require.NoError(t, err)
	for what, cluster := range map[string]string{
		"another Workspace": other.Text("clusterID"), "another Workspace by path": other.Text("workspacePath"),
		"the Org's own": orgCluster.Spec.Cluster, "the Org's own by path": s.OrgPath(s.org), "the users": s.UsersPath(), "root": "root", "nothing": "nothing",
	} {
		a, err := hub.Try(call{Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps, Header: bearer(secret)})
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusNotFound}, a.Code, "%s: %s", what, a.Raw)
	}
	a, err := hub.Try(call{Method: http.MethodGet, Path: "/clusters/" + s.OrgPath(s.org) + ":" + s.ws + configMaps, Header: bearer(secret)})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Code, "the control: its own by path: %s", a.Raw)
	header := bearer(secret)
	header["Impersonate-User"] = []string{"alice"}
	a, err = hub.Try(call{Method: http.MethodGet, Path: "/clusters/" + s.cluster + configMaps, Header: header})
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, a.Code, "it impersonates nobody")
}
