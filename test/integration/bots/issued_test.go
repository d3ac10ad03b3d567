package bots

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reader who has the answer with a token sees at once when it was issued.
func TestIssue_isReadBackRightAfterTheAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t, kcp.Shared(t, 1)[0])
	bot := s.bot(t, "member")
	get := s.call("alice", http.MethodGet, "/serviceaccounts/"+bot, nil)
	require.Empty(t, s.hub.Do(t, get, http.StatusOK).Text("lastTokenIssuedAt"))
	for range 20 {
		issued := s.hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds": 3600}`), http.StatusCreated)
		require.Equal(t, issued.Text("createdAt"), s.hub.Do(t, get, http.StatusOK).Text("lastTokenIssuedAt"))
	}
}
