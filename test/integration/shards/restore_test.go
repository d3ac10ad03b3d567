package shards

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/verify"
	"github.com/faroshq/kedge-hub/test/framework"
)

// losses are what people and bots have when the shards are saved, and lose between the two snapshots or afterwards. Each
// of two Workspaces lies on a shard of its own, with its Organization. In both, bob, dave and erin are members, and carol
// is an admin of both Organizations.
type losses struct {
	*world
	root string
	// stay are those Workspaces, with a token of a bot in each that is revoked and one that is not.
	stay          []workspace
	bots          []string
	revoked, kept []framework.Answer
	// gone are deleted afterwards, one on each shard, each of another Organization.
	gone []workspace
	// between is made on the second shard between the snapshots, so the root shard does not have its Workspace. bob is a
	// member.
	between workspace
	// closed counts the answers to bob in restore mode.
	closed atomic.Int64
}

// The data of an external kcp is put back, as deploy/README.md says, behind two hubs that are lost, too. The snapshot of the
// root shard is older than that of the second one. What ended afterwards is in the audit files of both.
func TestRestore_givesNoRightBackOnAnyShard(t *testing.T) { //nolint:paralleltest // it ends the kcp that all use
	l := newLosses(t)
	saved, at := t.TempDir(), time.Now().UTC().Format(time.RFC3339)
	require.NoError(t, kcp.SaveRoot(saved))
	l.loseBetween(t)
	require.NoError(t, kcp.SaveShard(saved, second))
	l.loseLater(t)
	l.stayLost(t)

	// The hubs have nothing to write to any more when they end.
	kcp.Stop()
	replay := []string{"restore", "--external", "--backup-at", at, "--replay-database", "none"}
	for _, hub := range l.hubs {
		hub.Stop(t)
		replay = append(replay, "--replay", filepath.Dir(audit.DefaultFile(hub.Options.DataDir)))
	}
	require.NoError(t, kcp.Restore(saved))
	l.areBack(t)

	for missing := 2; missing > 0; missing-- {
		_, says, err := l.command(t, replay[:len(replay)-2*missing]...)
		require.Error(t, err)
		require.Equal(t, missing, strings.Count(says, "rights: is missing, with the whole chain"), "%s", says)
		require.Contains(t, says, "--accept-lost-history")
	}
	out, says, err := l.command(t, replay...)
	require.NoError(t, err, "%s", says)
	require.Equal(t, len(l.hubs), strings.Count(out, "its audit log ends at event"), "%s", out)

	var knocks sync.WaitGroup
	stopped := make(chan struct{})
	stop := sync.OnceFunc(func() { close(stopped); knocks.Wait() })
	t.Cleanup(stop)
	l.hubs = framework.StartTogether(t, kcp.KCP, l.root, 2, func(o *server.Options) {
		o.DeletionGrace, o.ExpiredWorkspaceGrace = time.Second, time.Second
		knocks.Go(func() { l.knock(t, o, stopped) })
	})
	l.inKCP(t)
	l.stayLost(t)
	stop()
	require.Positive(t, l.closed.Load(), "no hub was in restore mode")
	l.reported(t)
	l.verified(t)
	_, says, err = l.command(t, "restore", "--release")
	require.NoError(t, err, "%s", says)
	l.held(t, "0")
}

func newLosses(t *testing.T) *losses {
	t.Helper()
	l := &losses{world: newWorld(t)}
	l.root = l.hubs[0].Options.RootWorkspace
	kcp.Schedule(t, framework.RootShard)
	l.gone = []workspace{l.workspace(t, l.far, framework.RootShard), l.at[second]}
	l.stay = []workspace{l.at[framework.RootShard], l.at["far"]}
	for i, ws := range l.stay {
		// Each replica has a part of the past.
		hub := l.hubs[i]
		add := framework.InOrg("alice", http.MethodPost, ws.org, "/members", framework.Adding("carol", "admin"))
		hub.Do(t, add, http.StatusCreated)
		for _, person := range []string{"dave", "erin"} {
			l.joined(t, person, ws)
		}
		create := ws.call("alice", http.MethodPost, "/serviceaccounts", `{"displayName":"CI","role":"member"}`)
		bot := hub.Do(t, create, http.StatusCreated).Text("uuid")
		issue := ws.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds":3600}`)
		l.bots = append(l.bots, bot)
		l.revoked = append(l.revoked, hub.Do(t, issue, http.StatusCreated))
		l.kept = append(l.kept, hub.Do(t, issue, http.StatusCreated))
		for _, token := range []string{l.revoked[i].Text("token"), l.kept[i].Text("token")} {
			framework.Eventually(t, framework.Long, func() error { return enters(hub, "", token, ws.cluster, http.StatusOK) })
		}
		hub.Enters(t, "carol", ws.cluster)
	}
	clients, name := kcp.Clients(t), strings.TrimPrefix(l.root, "root:")
	framework.Eventually(t, framework.Long, func() error {
		ws, err := clients.Workspaces("root").Get(t.Context(), name, getOptions())
		if err != nil {
			return err
		}
		return framework.Equal(len(l.hubs), strings.Count(ws.Annotations[v1alpha1.AuditHeadsAnnotation], ":rights:"))
	})
	return l
}

// remove removes a person from a Workspace, and waits until that is answered.
func (l *losses) remove(t *testing.T, hub *framework.Hub, person string, ws workspace) {
	t.Helper()
	hub.Do(t, ws.call("alice", http.MethodDelete, "/members/"+person, nil), http.StatusNoContent)
}

func (l *losses) loseBetween(t *testing.T) {
	t.Helper()
	for i, ws := range l.stay {
		l.remove(t, l.hubs[i], "dave", ws)
	}
	kcp.Schedule(t, second)
	l.between = l.workspace(t, l.near, second)
	require.Equal(t, http.StatusOK, kcp.Straight(t, "bob", l.between.cluster, configMaps))
}

func (l *losses) loseLater(t *testing.T) {
	t.Helper()
	l.remove(t, l.hubs[1], "bob", l.between)
	for i, ws := range l.stay {
		hub := l.hubs[i]
		l.remove(t, hub, "bob", ws)
		demote := framework.InOrg("alice", http.MethodPatch, ws.org, "/members/carol", framework.WithRole("member"))
		hub.Do(t, demote, http.StatusOK)
		token := "/serviceaccounts/" + l.bots[i] + "/tokens/" + l.revoked[i].Text("id")
		hub.Do(t, ws.call("alice", http.MethodDelete, token, nil), http.StatusNoContent)
		hub.Do(t, l.gone[i].call("alice", http.MethodDelete, "", nil), http.StatusOK)
	}
	framework.SignUp(t, l.hubs[0], "grace")
	grace := l.stay[0].call("alice", http.MethodPost, "/members", framework.Adding("grace", "member"))
	l.hubs[0].Do(t, grace, http.StatusCreated)
	late := l.stay[1].call("alice", http.MethodPost, "/serviceaccounts", `{"displayName":"Late","role":"member"}`)
	l.hubs[1].Do(t, late, http.StatusCreated)
}

// stayLost requires that nobody has what they lost, on the gates and in kcp, and that the others have what they had.
func (l *losses) stayLost(t *testing.T) {
	t.Helper()
	for _, hub := range l.hubs {
		for i, ws := range l.stay {
			for _, person := range []string{"bob", "carol", "dave"} {
				require.NoError(t, enters(hub, person, "", ws.cluster, http.StatusForbidden), person)
				hub.Do(t, ws.call(person, http.MethodGet, "", nil), http.StatusForbidden, http.StatusNotFound)
			}
			// A hub gets the keys for the tokens of bots with the first one, and says 503 until it has them.
			framework.Eventually(t, framework.Long, func() error {
				return enters(hub, "", l.kept[i].Text("token"), ws.cluster, http.StatusOK)
			})
			require.NoError(t, enters(hub, "", l.revoked[i].Text("token"), ws.cluster, http.StatusUnauthorized))
			in := framework.RolesListed(hub.Do(t, ws.call("alice", http.MethodGet, "/members", nil), http.StatusOK))
			require.Equal(t, "member", in["erin"])
			require.NotContains(t, in, "bob")
			require.NotContains(t, in, "dave")
			list := framework.InOrg("alice", http.MethodGet, ws.org, "/members", nil)
			in = framework.RolesListed(hub.Do(t, list, http.StatusOK))
			require.Equal(t, "member", in["carol"])
			require.NoError(t, enters(hub, "alice", "", l.gone[i].cluster, http.StatusForbidden))
			hub.Enters(t, "erin", ws.cluster)
		}
		require.NoError(t, enters(hub, "bob", "", l.between.cluster, http.StatusForbidden))
	}
	kcp.Refuses(t, "bob", l.between.cluster)
	for i, ws := range l.stay {
		for _, person := range []string{"bob", "carol", "dave"} {
			kcp.Refuses(t, person, ws.cluster)
		}
		require.Equal(t, http.StatusOK, kcp.Straight(t, "erin", ws.cluster, configMaps))
		kcp.Refuses(t, "alice", l.gone[i].cluster)
		framework.Eventually(t, framework.Long, func() error {
			return framework.Equal(http.StatusUnauthorized, kcp.StraightWith(t, l.revoked[i].Text("token"), ws.cluster, configMaps))
		})
		require.Equal(t, http.StatusOK, kcp.StraightWith(t, l.kept[i].Text("token"), ws.cluster, configMaps))
	}
}

// areBack waits until kcp serves all shards, and requires that it has what was lost.
func (l *losses) areBack(t *testing.T) {
	t.Helper()
	has := func(who, token string, ws workspace, code int) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error {
			got := kcp.StraightWith(t, token, ws.cluster, configMaps)
			return framework.Check(got == code, "%s gets %d instead of %d", who, got, code)
		})
	}
	for i, ws := range l.stay {
		has("bob", framework.Token("bob"), ws, http.StatusOK)
		has("carol", framework.Token("carol"), ws, http.StatusOK)
		has("the bot", l.revoked[i].Text("token"), ws, http.StatusOK)
		has("alice", framework.Token("alice"), l.gone[i], http.StatusOK)
	}
	has("bob", framework.Token("bob"), l.between, http.StatusOK)
	// The snapshots are of different times.
	has("dave", framework.Token("dave"), l.stay[0], http.StatusOK)
	has("dave", framework.Token("dave"), l.stay[1], http.StatusForbidden)
}

// command runs kedge-hub, as an operator does who has no hub at hand.
func (l *losses) command(t *testing.T, args ...string) (out, says string, err error) {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	args = append(args[:len(args):len(args)],
		"--kcp-kubeconfig", kcp.Kubeconfig, "--root-workspace", l.root, "--data-dir", t.TempDir())
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// knock has bob try to get in five times a second, from before a hub serves on.
func (l *losses) knock(t *testing.T, o *server.Options, stopped <-chan struct{}) {
	ca := filepath.Join(o.DataDir, "tls", "ca.crt")
	for n := 0; ; n++ {
		select {
		case <-stopped:
			return
		case <-time.After(200 * time.Millisecond):
		}
		client, err := framework.NewClient("https://"+o.ListenAddress, ca)
		if err != nil {
			continue
		}
		path := "/clusters/" + l.stay[n%len(l.stay)].cluster + configMaps
		a, err := client.TryOnce(call{As: "bob", Method: http.MethodGet, Path: path})
		client.HTTP.CloseIdleConnections()
		if err == nil && a.Code < http.StatusBadRequest {
			t.Errorf("bob gets %d at a restored hub: %s", a.Code, a.Raw)
		}
		waits := err == nil && a.Code == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != ""
		if waits && strings.Contains(string(a.Raw), "restore mode") {
			l.closed.Add(1)
		}
	}
}

// inKCP requires that the bindings have followed before a request is answered.
func (l *losses) inKCP(t *testing.T) {
	t.Helper()
	p := kcp.Platform(t, l.root)
	for _, ws := range l.stay {
		for person, roles := range map[string][]string{"bob": {}, "carol": {}, "dave": {}, "erin": {tenancy.ClusterRoleMember}} {
			require.Equal(t, roles, p.RolesIn(t, ws.cluster, person), person)
		}
	}
}

// reported requires that the report has what is lost, and the purges that are held.
func (l *losses) reported(t *testing.T) {
	t.Helper()
	out, says, err := l.command(t, "restore", "--report")
	require.NoError(t, err, "%s", says)
	var r restore.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Empty(t, r.Unknown)
	require.Empty(t, r.GivenUp())
	lost := map[string]bool{}
	for _, of := range r.Lost {
		lost[of.What+" "+of.Workspace] = true
	}
	given, between := []string{"person ", "member " + l.stay[0].uuid, "bot " + l.stay[1].uuid}, l.between.uuid
	for _, of := range append(given, "workspace "+between, "member "+between) {
		require.True(t, lost[of], "%s: %v", of, lost)
	}
	path := l.root + ":orgs:" + l.near + ":" + l.between.uuid
	require.Equal(t, []restore.Orphan{{Path: path, Cluster: l.between.cluster}}, r.Orphans)
	due := map[string]string{}
	for _, p := range r.Purges {
		due[p.Workspace] = p.Org
	}
	p, want := kcp.Platform(t, l.root), map[string]string{}
	for _, ws := range l.gone {
		want[ws.uuid] = ws.org
		require.Contains(t, p.WorkspacesOf(t, ws.org), ws.uuid)
	}
	require.Equal(t, want, due)
	l.held(t, "1")
}

// held waits until all hubs say whether they hold purges.
func (l *losses) held(t *testing.T, value string) {
	t.Helper()
	for _, hub := range l.hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := (&framework.Client{URL: hub.Metrics, HTTP: http.DefaultClient}).Try(call{Method: http.MethodGet})
			says := err == nil && strings.Contains(string(a.Raw), "\nkedge_purges_held "+value+"\n")
			return framework.Check(says, "kedge_purges_held is not %s: %v", value, err)
		})
	}
}

// verified requires that nothing differs but what no Workspace leads to.
func (l *losses) verified(t *testing.T) {
	t.Helper()
	out, says, err := l.command(t, "verify", "--timeout", "1m", "-o", "json", "--spare-organizations", "0", "--spare-workspaces", "0")
	require.Error(t, err)
	var r verify.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r), "%s", says)
	require.Len(t, r.Differences, 1, "%s", out)
	require.Equal(t, verify.KindLogicalCluster, r.Differences[0].Kind)
	require.Equal(t, l.between.cluster, r.Differences[0].Name)
}
