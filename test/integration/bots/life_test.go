package bots

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

func TestBot_hasWhatFollowsFromItInTheWorkspace(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleMember)
	issued := s.token(t, bot)
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleMember, "secret")
	held := s.inKCP(t, bot)
	require.Equal(t, issued.id, held.Spec.Tokens[0].ID)
	require.NotEmpty(t, held.Spec.Tokens[0].SecretUID)
	require.NotEmpty(t, held.Status.ServiceAccountUID)
	a, err := framework.Readiness(hub.Metrics)
	require.NoError(t, err)
	require.Contains(t, string(a.Raw), "[+]bots ok")
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(strings.Contains(hub.Log.String(), "a revoked token of a bot ends in kcp, too"), "the hub has not said which kcp it is in front of")
	})

	// The annotations of the account are for people to read: kcp refuses to alter them, and
	// nothing follows from them.
	_, _, err = hub.Kubectl(t, "alice", s.cluster, "annotate", "serviceaccount", bot, "--overwrite", "tenancy.kedge.faros.sh/role=admin")
	require.Error(t, err)
	require.NoError(t, s.ClusterRoleBindings(s.cluster).Delete(t.Context(), tenancy.BotBinding(held, "").Name, deleteOptions()))
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleMember, "secret")

	hub.Do(t, s.call("alice", http.MethodPatch, "/serviceaccounts/"+bot, `{"role":"admin"}`), http.StatusOK)
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleAdmin, "secret")
	hub.Do(t, s.call("alice", http.MethodDelete, "/serviceaccounts/"+bot+"/tokens/"+issued.id, nil), http.StatusNoContent)
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleAdmin)
	hub.Do(t, s.call("alice", http.MethodDelete, "/serviceaccounts/"+bot, nil), http.StatusNoContent)
	s.leaves(t, bot)
}

func TestBot_worksWithItsRole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.AuditLogFile = file })
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	issued := s.token(t, bot)
	secret := issued.secret
	began := time.Now().Truncate(time.Second)
	s.works(t, hub, secret)
	used := make(chan error, 1)
	go func() { used <- framework.Wait(15*time.Second, func() error { return s.usedSince(began, bot) }) }()
	write := func(path, body string) int { return s.as(t, hub, secret, http.MethodPost, path, body).Code }
	const account = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"generateName":"made-"}}`
	require.Equal(t, http.StatusCreated, write(configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"built"}}`))
	require.Equal(t, http.StatusForbidden, write("/api/v1/namespaces/default/serviceaccounts", account), "members manage no accounts")

	// What it may call of the API, and nothing else.
	ask := func(method, path string) framework.Answer {
		a, err := hub.Try(call{Method: method, Path: path, Org: s.org, Workspace: s.ws, Header: bearer(secret)})
		require.NoError(t, err)
		return a
	}
	me := ask(http.MethodGet, "/api/users/me")
	require.Equal(t, http.StatusOK, me.Code, "%s", me.Raw)
	require.Equal(t, []string{"Bot", bot, s.org, s.ws, "member"}, []string{me.Text("kind"), me.Text("uuid"), me.Text("org"), me.Text("workspace"), me.Text("role")})
	base := "/api/orgs/" + s.org + "/workspaces/" + s.ws
	config := ask(http.MethodGet, base+"/kubeconfig")
	require.Equal(t, http.StatusOK, config.Code)
	require.Contains(t, string(config.Raw), hub.URL+"/clusters/"+s.cluster)
	require.NotContains(t, string(config.Raw), secret)
	for _, path := range []string{"/api/orgs", base, base + "/serviceaccounts", base + "/members", "/api/users/me/memberships"} {
		require.Equal(t, http.StatusForbidden, ask(http.MethodGet, path).Code, path)
	}
	require.Equal(t, http.StatusForbidden, ask(http.MethodPost, base+"/serviceaccounts/"+bot+"/tokens").Code, "it issues no tokens")

	// The living token has the new role at once.
	hub.Do(t, s.call("alice", http.MethodPatch, "/serviceaccounts/"+bot, `{"role":"admin"}`), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		code := write("/api/v1/namespaces/default/serviceaccounts", account)
		return framework.Check(code == http.StatusCreated, "%d", code)
	})
	hub.Do(t, s.call("alice", http.MethodPatch, "/serviceaccounts/"+bot, `{"role":"member"}`), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		code := write("/api/v1/namespaces/default/serviceaccounts", account)
		return framework.Check(code == http.StatusForbidden, "%d", code)
	})
	require.NotContains(t, hub.Log.String(), secret)
	metrics, err := (&framework.Client{URL: hub.Metrics, HTTP: http.DefaultClient}).Try(call{Method: http.MethodGet})
	require.NoError(t, err)
	require.NotContains(t, string(metrics.Raw), secret)

	made := slices.DeleteFunc(framework.AuditEvents(t, file), func(e audit.Event) bool {
		return e.Resource == nil || e.Resource.Resource != "configmaps" || e.Code != http.StatusCreated
	})
	require.NotEmpty(t, made)
	require.Equal(t, audit.Actor{Kind: audit.ActorBot, Bot: bot, Token: issued.id}, made[0].Actor)
	require.Equal(t, s.org, made[0].Org)
	require.False(t, made[0].Outsider)
	raw := framework.AuditText(t, file)
	require.NotContains(t, string(raw), secret)
	require.NoError(t, <-used, "the first use is shown within 15 seconds")
}

// usedSince fails unless the list of the tokens of a bot shows a use of its only token since a time.
func (s scene) usedSince(began time.Time, bot string) error {
	a, err := s.hub.Try(s.call("alice", http.MethodGet, "/serviceaccounts/"+bot+"/tokens", nil))
	if err != nil {
		return err
	}
	var list rest.List[rest.BotToken]
	if err := json.Unmarshal(a.Raw, &list); err != nil {
		return err
	}
	return framework.Check(len(list.Items) == 1 && list.Items[0].LastUsedAt != nil && !list.Items[0].LastUsedAt.Time.Before(began), "%d %s", a.Code, a.Raw)
}

func TestBot_tokensEndOnEveryHub(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	hub, other := hubs[0], hubs[1]
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	first, second := s.token(t, bot), s.token(t, bot)
	require.NotEqual(t, http.StatusUnauthorized, s.as(t, other, second.secret, http.MethodGet, configMaps, nil).Code, "the other hub takes a new token at once")
	for _, h := range hubs {
		s.works(t, h, first.secret)
		s.works(t, h, second.secret)
	}
	base := "/serviceaccounts/" + bot
	ended := s.watches(t, other, first.secret)
	began := time.Now()
	hub.Do(t, s.call("alice", http.MethodDelete, base+"/tokens/"+first.id, nil), http.StatusNoContent)
	require.Equal(t, http.StatusUnauthorized, s.as(t, hub, first.secret, http.MethodGet, configMaps, nil).Code, "the hub that answered refuses it at once")
	s.refused(t, other, first.secret, http.StatusUnauthorized, began)
	s.cut(t, ended, began)
	s.works(t, other, second.secret)

	ended, began = s.watches(t, other, second.secret), time.Now()
	hub.Do(t, s.call("alice", http.MethodDelete, base+"/tokens", nil), http.StatusNoContent)
	s.refused(t, other, second.secret, http.StatusUnauthorized, began)
	s.cut(t, ended, began)
	third := s.token(t, bot)
	s.works(t, other, third.secret)

	ended, began = s.watches(t, other, third.secret), time.Now()
	hub.Do(t, s.call("alice", http.MethodDelete, "", nil), http.StatusOK)
	s.refused(t, other, third.secret, http.StatusForbidden, began)
	s.cut(t, ended, began)
	hub.Do(t, s.call("alice", http.MethodPost, "/undelete", nil), http.StatusOK, http.StatusAccepted)
	s.works(t, other, third.secret)

	ended, began = s.watches(t, other, third.secret), time.Now()
	hub.Do(t, s.call("alice", http.MethodDelete, base, nil), http.StatusNoContent)
	s.refused(t, other, third.secret, http.StatusUnauthorized, began)
	s.cut(t, ended, began)
	a := s.as(t, other, third.secret, http.MethodGet, configMaps, nil)
	require.Contains(t, a.Text("message"), "make a bot")
}
