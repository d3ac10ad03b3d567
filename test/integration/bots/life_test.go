package bots

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

func TestBot_hasWhatFollowsFromItInTheWorkspace(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot())
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleMember)
	require.NotEmpty(t, s.inKCP(t, bot).Status.ServiceAccountUID)
	issued := s.token(t, bot)
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleMember, "secret")
	require.Equal(t, issued.id, s.inKCP(t, bot).Spec.Tokens[0].ID)
	require.NotEmpty(t, s.inKCP(t, bot).Spec.Tokens[0].SecretUID)
	framework.Eventually(t, framework.Long, func() error {
		a, err := framework.Readiness(hub.Metrics)
		if err != nil {
			return err
		}
		return framework.Check(a.Code == http.StatusOK, "%s", a.Raw)
	})
	a, err := framework.Readiness(hub.Metrics)
	require.NoError(t, err)
	require.Contains(t, string(a.Raw), "[+]bots ok")

	hub.Do(t, s.call("alice", http.MethodPatch, "/serviceaccounts/"+bot, `{"role":"admin"}`), http.StatusOK)
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleAdmin, "secret")
	hub.Do(t, s.call("alice", http.MethodDelete, "/serviceaccounts/"+bot+"/tokens/"+issued.id, nil), http.StatusNoContent)
	s.leaves(t, bot, "account", "binding to "+tenancy.ClusterRoleAdmin)
	hub.Do(t, s.call("alice", http.MethodDelete, "/serviceaccounts/"+bot, nil), http.StatusNoContent)
	s.leaves(t, bot)
}
