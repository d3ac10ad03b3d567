package bots

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/framework"
)

// Some installations of kcp run with --service-account-lookup=false: kcp accepts a token of an
// account that was deleted. The hub refuses it all the same, and says at start what it found.
func TestBot_endsWhereKcpLooksNothingUp(t *testing.T) {
	t.Parallel()
	blind, err := framework.StartKCPWithoutLookup(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(blind.Kill)
	hub := framework.StartHub(t, blind, framework.NewRoot())
	s := newSceneAt(t, blind, hub)
	bot := s.bot(t, "member")
	direct, err := s.Anonymous()
	require.NoError(t, err)
	ends := func(end func(issued token)) {
		t.Helper()
		issued := s.token(t, bot)
		s.works(t, hub, issued.secret)
		ended, began := s.watches(t, hub, issued.secret), time.Now()
		end(issued)
		s.refused(t, hub, issued.secret, http.StatusUnauthorized, began)
		s.cut(t, ended, began)
		_, _, err := direct.UserOf(t.Context(), s.cluster, issued.secret)
		require.False(t, errs.Is(err, errs.Unauthenticated), "the control: kcp takes it still: %v", err)
	}
	base := "/serviceaccounts/" + bot
	ends(func(issued token) {
		hub.Do(t, s.call("alice", http.MethodDelete, base+"/tokens/"+issued.id, nil), http.StatusNoContent)
	})
	ends(func(token) {
		hub.Do(t, s.call("alice", http.MethodDelete, base+"/tokens", nil), http.StatusNoContent)
	})
	ends(func(token) {
		hub.Do(t, s.call("alice", http.MethodDelete, base, nil), http.StatusNoContent)
	})
	framework.Eventually(t, framework.Long, func() error {
		a, err := framework.Readiness(hub.Metrics)
		if err != nil {
			return err
		}
		return framework.Check(strings.Contains(string(a.Raw), "--service-account-lookup=false"), "%s", a.Raw)
	})
	require.Contains(t, hub.Log.String(), "--service-account-lookup=false")
	hub.Do(t, call{Method: http.MethodGet, Path: "/readyz"}, http.StatusOK)
}
