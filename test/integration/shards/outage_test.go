package shards

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// outage ends the second shard and starts it again under two running hubs.
func (w *world) outage(t *testing.T) {
	near, there, far := w.at[framework.RootShard], w.at[second], w.at["far"]
	open := watches(t, w.hubs[1], "bob", near.cluster)
	ends := []<-chan time.Time{watches(t, w.hubs[0], "bob", there.cluster), watches(t, w.hubs[1], "bob", far.cluster)}
	kcp.KillShard(second)
	began := time.Now()
	for _, end := range ends {
		select {
		case <-end:
		case <-time.After(framework.Long):
			require.Fail(t, "a watch on a shard that is down is still open")
		}
	}
	for _, hub := range w.hubs {
		for _, ws := range []workspace{there, far} {
			framework.Eventually(t, framework.Long, func() error { return unavailable(hub, call{As: "bob", Path: "/clusters/" + ws.cluster + configMaps}) })
		}
		// What the Organization says may be out of date.
		framework.Eventually(t, framework.Long, func() error { return unavailable(hub, far.call("alice", "", "/members", nil)) })
	}
	t.Logf("two hubs answer 503 for the shard after %s", time.Since(began).Round(time.Millisecond))

	// Everybody else is unhurt, and rights that lie on another shard can be taken away.
	w.works(t, "erin", w.joined(t, "erin", near))
	for _, hub := range w.hubs {
		a := hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/orgs"}, http.StatusOK)
		require.Contains(t, string(a.Raw), w.far)
		hub.Do(t, call{Method: http.MethodGet, Path: "/readyz"}, http.StatusOK)
		require.NoError(t, enters(hub, "carol", "", there.cluster, http.StatusForbidden), "strangers learn nothing")
	}
	kcp.Schedule(t, framework.RootShard)
	w.workspace(t, w.near, framework.RootShard)
	removed := make(chan framework.Answer, 1)
	go func() {
		// The answer waits for the bindings on the shard that is down.
		a, _ := w.hubs[0].Try(there.call("alice", http.MethodDelete, "/members/bob", nil))
		removed <- a
	}()
	framework.Eventually(t, framework.Long, func() error {
		a, err := w.hubs[1].Try(there.call("alice", http.MethodGet, "/members", nil))
		return framework.Check(err == nil && a.Code == http.StatusOK && framework.RolesListed(a)["bob"] == "", "%d %s %v", a.Code, a.Raw, err)
	})
	select {
	case <-open:
		require.Fail(t, "a watch on another shard has ended")
	default:
	}

	require.NoError(t, kcp.StartShard(second))
	began = time.Now()
	for _, hub := range w.hubs {
		hub.Enters(t, "alice", there.cluster)
		hub.Enters(t, "bob", far.cluster)
		require.NoError(t, enters(hub, "bob", "", there.cluster, http.StatusForbidden), "removed during the outage")
	}
	require.Contains(t, []int{http.StatusNoContent, http.StatusAccepted}, (<-removed).Code)
	t.Logf("well again %s after the shard was ready", time.Since(began).Round(time.Millisecond))
	kcp.Refuses(t, "bob", there.cluster)
	w.hubs[0].Do(t, far.call("alice", http.MethodPost, "/members", framework.Adding("erin", "member")), http.StatusCreated)
}

// joined makes a person a member of a Workspace.
func (w *world) joined(t *testing.T, as string, ws workspace) workspace {
	t.Helper()
	w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/members", framework.Adding(as, "member")), http.StatusCreated)
	for _, hub := range w.hubs {
		hub.Enters(t, as, ws.cluster)
	}
	return ws
}

// addition starts a third shard under the running hubs.
func (w *world) addition(t *testing.T) {
	framework.Sample(t, 2)
	require.NoError(t, kcp.StartShard("three"))
	kcp.Schedule(t, "three")
	org := w.hubs[0].CreateOrg(t, "alice", "On a new shard")
	ws := w.workspace(t, org, "three")
	w.works(t, "bob", ws)
	w.hubs[0].Do(t, ws.call("alice", http.MethodDelete, "", nil), http.StatusOK)
	kcp.Refuses(t, "alice", ws.cluster)
}

// unavailable is a condition: a call is answered 503 with Retry-After.
func unavailable(hub *framework.Hub, c call) error {
	c.Method = http.MethodGet
	a, err := hub.Try(c)
	return framework.Check(err == nil && a.Code == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "" && strings.Contains(string(a.Raw), "try again"),
		"%d %s %v", a.Code, a.Raw, err)
}
