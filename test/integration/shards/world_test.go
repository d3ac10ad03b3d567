package shards

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/test/framework"
)

// world is two hubs with two Organizations of alice: one lies on the root shard and has a Workspace
// there and one on the second shard, the other lies on the second shard with its Workspace. bob is
// a member of each Workspace.
type world struct {
	hubs []*framework.Hub
	// near and far are the Organizations.
	near, far string
	// at are the Workspaces: those of near by shard, and that of far by "far".
	at map[string]workspace
}

type workspace struct{ org, uuid, cluster string }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{hubs: framework.StartHubs(t, kcp.KCP, framework.NewRoot(), 2), at: map[string]workspace{}}
	hub := w.hubs[0]
	framework.SignUp(t, hub, "alice", "bob", "carol", "dave", "erin")
	kcp.Schedule(t, framework.RootShard)
	w.near = hub.CreateOrg(t, "alice", "Near")
	w.at[framework.RootShard] = w.workspace(t, w.near, framework.RootShard)
	kcp.Schedule(t, second)
	w.at[second] = w.workspace(t, w.near, second)
	w.far = hub.CreateOrg(t, "alice", "Far")
	w.at["far"] = w.workspace(t, w.far, second)
	return w
}

// workspace creates a Workspace of alice, in which bob is a member, on the shard.
func (w *world) workspace(t *testing.T, org, shard string) workspace {
	t.Helper()
	a := w.hubs[0].CreateWorkspace(t, "alice", org, "On "+shard)
	ws := workspace{org, a.Text("uuid"), a.Text("clusterID")}
	require.Equal(t, shard, kcp.ShardOf(t, ws.cluster))
	w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	for _, hub := range w.hubs {
		hub.Enters(t, "bob", ws.cluster)
	}
	return ws
}

func (ws workspace) call(as, method, below string, body any) call {
	return framework.InWorkspace(as, method, ws.org, ws.uuid, below, body)
}

// works has a person write and read in a Workspace with kubectl, through each hub.
func (w *world) works(t *testing.T, as string, ws workspace) {
	t.Helper()
	for i, hub := range w.hubs {
		name := fmt.Sprintf("%s-%d", as, i)
		_, errOut, err := hub.Kubectl(t, as, ws.cluster, "create", "configmap", name)
		require.NoError(t, err, errOut)
		out, errOut, err := hub.Kubectl(t, as, ws.cluster, "get", "configmap", name, "-o", "name")
		require.NoError(t, err, errOut)
		require.Equal(t, "configmap/"+name+"\n", out)
	}
}

func getOptions() metav1.GetOptions { return metav1.GetOptions{} }

const configMaps = "/api/v1/namespaces/default/configmaps"

// enters is a condition: a person, or a token, gets this answer to a read of a logical cluster.
func enters(hub *framework.Hub, as, token, cluster string, code int) error {
	a, err := hub.Try(call{As: as, Token: token, Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps})
	return framework.Check(err == nil && a.Code == code, "%d instead of %d: %s %v", a.Code, code, a.Raw, err)
}

// watches opens a watch and returns a channel that gets the time of its end.
func watches(t *testing.T, hub *framework.Hub, as, cluster string) <-chan time.Time {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/clusters/"+cluster+configMaps+"?watch=true&timeoutSeconds=600", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+framework.Token(as))
	client := *hub.HTTP
	client.Timeout = 0
	response, err := client.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	ended := make(chan time.Time, 1)
	go func() {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		ended <- time.Now()
	}()
	return ended
}
