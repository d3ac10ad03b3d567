package shards

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The steps share one world, because it takes a sharded kcp some time to make it. The last ones end
// a shard.
func TestShards_areNotNoticed(t *testing.T) { //nolint:paralleltest // a step ends a shard that all use
	w := newWorld(t)
	p := kcp.Platform(t, w.hubs[0].Options.RootWorkspace)
	for shard, org := range map[string]string{framework.RootShard: w.near, second: w.far} {
		ws, err := p.Workspaces(p.OrgsPath()).Get(t.Context(), org, getOptions())
		require.NoError(t, err)
		require.Equal(t, shard, kcp.ShardOf(t, ws.Spec.Cluster))
	}
	t.Run("people work on each shard", w.peopleWork)
	t.Run("roles are those of one kcp", w.roles)
	t.Run("a bot works with its token", w.bot)
	t.Run("a removed member is out within a second", w.revocation)
	t.Run("a deleted Workspace is closed by kcp", w.deletion)
	t.Run("a provider of another shard is enabled", w.provider)
	t.Run("an outage is that of one shard", w.outage)
	t.Run("a shard that is added is seen", w.addition)
}

func (w *world) peopleWork(t *testing.T) {
	for _, ws := range w.at {
		w.works(t, "alice", ws)
		w.works(t, "bob", ws)
	}
}

// roles is a sample of the authorization matrix.
func (w *world) roles(t *testing.T) {
	const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	for name, ws := range w.at {
		for _, c := range []struct {
			call call
			want map[string]int
		}{
			{call{Path: "/clusters/" + ws.cluster + configMaps}, map[string]int{"alice": 200, "bob": 200, "carol": 403, "erin": 403}},
			{call{Path: "/clusters/" + ws.cluster + roles}, map[string]int{"alice": 200, "bob": 200, "carol": 403}},
			{ws.call("", "", "", nil), map[string]int{"alice": 200, "bob": 200, "carol": 403}},
			{ws.call("", "", "/members", nil), map[string]int{"alice": 200, "bob": 200, "carol": 403}},
			{framework.InOrg("", "", ws.org, "/members", nil), map[string]int{"alice": 200, "bob": 403, "carol": 403}},
		} {
			for as, code := range c.want {
				for _, hub := range w.hubs {
					c.call.As, c.call.Method = as, http.MethodGet
					a, err := hub.Try(c.call)
					require.NoError(t, err)
					require.Equal(t, code, a.Code, "%s: %s as %s: %s", name, c.call.Path, as, a.Raw)
				}
			}
		}
		role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"mine"}}`
		for _, hub := range w.hubs {
			hub.Do(t, call{As: "bob", Method: http.MethodPost, Path: "/clusters/" + ws.cluster + roles, Body: role}, http.StatusForbidden)
		}
		w.hubs[0].Do(t, ws.call("bob", http.MethodPost, "/members", framework.Adding("carol", "member")), http.StatusForbidden)
		_, errOut, err := w.hubs[0].Kubectl(t, "alice", ws.cluster, "create", "clusterrolebinding", "mine", "--clusterrole="+tenancy.ClusterRoleAdmin, "--user=carol")
		require.Error(t, err, "the admission policy holds on every shard")
		require.Contains(t, errOut, "ValidatingAdmissionPolicy")
	}
}

// bot uses a token that its shard has signed with a key of its own.
func (w *world) bot(t *testing.T) {
	for _, ws := range w.at {
		bot := w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/serviceaccounts", `{"displayName":"CI","role":"member"}`), http.StatusCreated).Text("uuid")
		issued := w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds":3600}`), http.StatusCreated)
		for _, hub := range w.hubs {
			framework.Eventually(t, framework.Long, func() error { return enters(hub, "", issued.Text("token"), ws.cluster, http.StatusOK) })
		}
		me, err := w.hubs[1].Try(call{Method: http.MethodGet, Path: "/api/users/me", Org: ws.org, Workspace: ws.uuid, Token: issued.Text("token")})
		require.NoError(t, err)
		require.Equal(t, bot, me.Text("uuid"), "%s", me.Raw)
		w.hubs[0].Do(t, ws.call("alice", http.MethodDelete, "/serviceaccounts/"+bot+"/tokens/"+issued.Text("id"), nil), http.StatusNoContent)
		for _, hub := range w.hubs {
			framework.Eventually(t, time.Second, func() error {
				return enters(hub, "", issued.Text("token"), ws.cluster, http.StatusUnauthorized)
			})
		}
	}
}

func (w *world) revocation(t *testing.T) {
	for _, ws := range w.at {
		w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/members", framework.Adding("dave", "member")), http.StatusCreated)
		ends := make([]<-chan time.Time, len(w.hubs))
		for i, hub := range w.hubs {
			hub.Enters(t, "dave", ws.cluster)
			ends[i] = watches(t, hub, "dave", ws.cluster)
		}
		w.hubs[0].Do(t, ws.call("alice", http.MethodDelete, "/members/dave", nil), http.StatusNoContent)
		answered := time.Now()
		for i, hub := range w.hubs {
			select {
			case at := <-ends[i]:
				require.WithinDuration(t, answered, at, time.Second)
			case <-time.After(2 * time.Second):
				require.Fail(t, "the watch is still open")
			}
			require.NoError(t, enters(hub, "dave", "", ws.cluster, http.StatusForbidden))
		}
		kcp.Refuses(t, "dave", ws.cluster)
	}
}

// deletion shows that kcp itself closes what is soft-deleted, on the shard that it lies on.
func (w *world) deletion(t *testing.T) {
	for name, ws := range w.at {
		w.hubs[0].Do(t, ws.call("alice", http.MethodDelete, "", nil), http.StatusOK)
		kcp.Refuses(t, "alice", ws.cluster)
		a := w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/undelete", nil), http.StatusOK)
		require.Equal(t, "Ready", a.Text("phase"), "%s: %s", name, a.Raw)
		for _, hub := range w.hubs {
			hub.Enters(t, "bob", ws.cluster)
		}
	}
	w.hubs[0].Do(t, framework.InOrg("alice", http.MethodDelete, w.far, "", nil), http.StatusOK)
	kcp.Refuses(t, "alice", w.at["far"].cluster)
	w.hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, w.far, "/undelete", nil), http.StatusOK)
	for _, hub := range w.hubs {
		hub.Enters(t, "bob", w.at["far"].cluster)
	}
}

// provider enables an API of the root shard on the second one.
func (w *world) provider(t *testing.T) {
	kcp.Schedule(t, framework.RootShard)
	root := w.hubs[0].Options.RootWorkspace
	export := framework.Provider(t, kcp.KCP, root+":providers:widgets")
	kcp.Applies(t, root+":providers", framework.ExampleCatalog(t, "entry.yaml", export.Path))
	entry, ws := tenancy.CatalogEntryName("", "widgets"), w.at["far"]
	framework.Eventually(t, framework.Long, func() error {
		a, err := w.hubs[0].Try(ws.call("alice", http.MethodGet, "/providers/"+entry, nil))
		return framework.Check(err == nil && a.Code == http.StatusOK, "%d %s %v", a.Code, a.Raw, err)
	})
	a := w.hubs[0].Do(t, ws.call("alice", http.MethodPost, "/providers/"+entry+"/enable", `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[{"group":"","resource":"secrets"}]}`), http.StatusCreated)
	require.Equal(t, "Enabled", a.Text("state"))
	for i, hub := range w.hubs {
		widget := fmt.Sprintf(`{"apiVersion":"widgets.example.org/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"color":"red"}}`, i)
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(call{As: "bob", Method: http.MethodPost, Path: "/clusters/" + ws.cluster + "/apis/widgets.example.org/v1/namespaces/default/widgets", Body: widget})
			return framework.Check(err == nil && a.Code == http.StatusCreated, "%d %s %v", a.Code, a.Raw, err)
		})
	}
}
