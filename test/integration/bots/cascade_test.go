package bots

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A Workspace takes its bots along, and an Organization all of them.
func TestBots_endWithTheirWorkspace(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.DeletionGrace = time.Second })
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	secret := s.token(t, bot).secret
	s.works(t, hub, secret)
	keeps := s
	ws := hub.CreateWorkspace(t, "alice", s.org, "Other")
	keeps.ws, keeps.cluster = ws.Text("uuid"), ws.Text("clusterID")
	other := keeps.bot(t, "member")

	hub.Do(t, s.call("alice", http.MethodDelete, "", nil), http.StatusOK)
	framework.NowAndThen(t, func() error {
		_, err := s.Bots(s.OrgPath(s.org)).Get(t.Context(), bot, getOptions())
		return framework.Check(apierrors.IsNotFound(err), "the bot is still there: %v", err)
	})
	require.Equal(t, http.StatusUnauthorized, s.as(t, hub, secret, http.MethodGet, configMaps, nil).Code)
	require.NotEmpty(t, keeps.inKCP(t, other).Status.ServiceAccountUID, "the bot of the other Workspace stays")

	hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.org, "", nil), http.StatusOK)
	framework.NowAndThen(t, func() error {
		_, err := s.Organizations(s.OrgsPath()).Get(t.Context(), s.org, getOptions())
		return framework.Check(apierrors.IsNotFound(err), "the organization is still there: %v", err)
	})
}
