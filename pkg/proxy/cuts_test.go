package proxy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The attack: remove somebody from one's own Organization, and learn what ends in another one at the same time.
func TestCountCut_isAboutOneOrganization(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	h.rights.set("alice", false, adminOf(orgA), adminOf(orgB))
	kcps.watch(t, client, url, "alice", "aaaa")
	kcps.watch(t, client, url, "alice", "bbbb")
	inA, everywhere := h.proxy.CountCut("alice", orgA), h.proxy.CountCut("alice", "")
	h.rights.set("alice", false)
	h.proxy.Recheck("alice")
	require.Equal(t, []int{1, 2}, []int{inA(), everywhere()})
}
