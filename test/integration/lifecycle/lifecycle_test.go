package lifecycle

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

func grace(d time.Duration) func(*server.Options) {
	return func(o *server.Options) { o.DeletionGrace = d }
}

func personal(o *server.Options) { o.PersonalOrgs = true }

// A new person gets exactly one Org, an admin Membership and a Workspace that is
// accessible with kubectl.
func TestSignUp_bringsAnOrgAndAWorkspace(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), personal)
	var me framework.Answer
	framework.Eventually(t, framework.Long, func() error {
		me = hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
		if me.Text("defaultWorkspace") == "" {
			return fmt.Errorf("no default workspace yet: %s", me.Raw)
		}
		return nil
	})
	org := me.Text("personalOrg")
	got := hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + org, Org: org}, http.StatusOK)
	require.Equal(t, "alice's personal", got.Text("displayName"))
	require.Equal(t, "true", got.Text("personal"))
	require.Equal(t, "admin", got.Text("role"))
	ws := hub.Do(t, framework.Call{
		As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + org + "/workspaces/" + me.Text("defaultWorkspace"),
		Org: org, Workspace: me.Text("defaultWorkspace"),
	}, http.StatusOK)
	hub.Enters(t, "alice", ws.Text("clusterID"))
	_, errOut, err := hub.Kubectl(t, "alice", ws.Text("clusterID"), "get", "namespaces")
	require.NoError(t, err, errOut)
	require.Equal(t, map[string]any{"limit": 10.0, "used": 0.0}, me.JSON["orgQuota"], "the personal one does not count")
}

// O-13: a deleted object is hidden at once and refused by kcp itself; an undelete
// restores it without loss.
func TestO13_AnOrgAndAWorkspaceAreDeletedAndUndeleted(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "dev")
	cluster := ws.Text("clusterID")
	workspace := "/api/orgs/" + org + "/workspaces/" + ws.Text("uuid")
	const text = "The shop\nof the north"
	described := map[string]string{"description": text}
	for _, patch := range []framework.Call{
		framework.InOrg("alice", http.MethodPatch, org, "", described),
		framework.InWorkspace("alice", http.MethodPatch, org, ws.Text("uuid"), "", described),
	} {
		require.Equal(t, text, hub.Do(t, patch, http.StatusOK).Text("description"))
	}
	_, errOut, err := hub.Kubectl(t, "alice", cluster, "create", "configmap", "kept")
	require.NoError(t, err, errOut)
	for name, target := range map[string]framework.Call{
		"workspace": {As: "alice", Path: workspace, Org: org, Workspace: ws.Text("uuid")},
		"org":       {As: "alice", Path: "/api/orgs/" + org, Org: org},
	} {
		get, remove, undelete := target, target, target
		get.Method, remove.Method, undelete.Method = http.MethodGet, http.MethodDelete, http.MethodPost
		undelete.Path += "/undelete"
		deleted := hub.Do(t, remove, http.StatusOK)
		require.NotEmpty(t, deleted.Text("deletionRequestedAt"), name)
		require.NotEmpty(t, deleted.Text("purgeAt"), name)
		hub.Do(t, get, http.StatusNotFound)
		_, errOut, err := hub.Kubectl(t, "alice", cluster, "get", "configmaps")
		require.Error(t, err)
		require.Contains(t, errOut, "deleted", name)
		framework.Eventually(t, framework.Long, func() error {
			_, errOut, err := kcp.Kubectl(t, "", cluster, "get", "--raw", "/api/v1/configmaps")
			return framework.Check(err != nil && strings.Contains(errOut, "inactive"), "%s: kcp itself refuses even its admin: %v %s", name, err, errOut)
		})

		restored := hub.Do(t, undelete, http.StatusOK)
		require.Empty(t, restored.Text("deletionRequestedAt"), name)
		require.Equal(t, "Ready", restored.Text("phase"), "%s: %s", name, restored.Raw)
		require.Equal(t, text, restored.Text("description"), "%s: %s", name, restored.Raw)
		hub.Enters(t, "alice", cluster)
		out, errOut, err := hub.Kubectl(t, "alice", cluster, "get", "configmap", "kept", "-o", "name")
		require.NoError(t, err, errOut)
		require.Equal(t, "configmap/kept\n", out)
		hub.Do(t, undelete, http.StatusOK)
	}
	cleared := hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws.Text("uuid"), "", map[string]any{"description": nil}), http.StatusOK)
	require.Empty(t, cleared.Text("description"))
	// Inactive logical clusters do not affect other Workspaces and Orgs.
	hub.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: workspace, Org: org, Workspace: ws.Text("uuid")}, http.StatusOK)
	hub.CreateWorkspace(t, "alice", org, "another")
	hub.CreateOrg(t, "bob", "another")
}

// O-13, O-15: an admin of an Organization brings back a Workspace that a member made, and who has left since. Members who are
// not in it do not learn that there was one.
func TestO13_AnOrgAdminFindsAndUndeletesWhatAColleagueMade(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	framework.SignUp(t, hub, "bob", "carol", "dave")
	org := hub.CreateOrg(t, "alice", "ACME")
	for _, name := range []string{"bob", "carol", "dave"} {
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(name, "member")), http.StatusCreated)
	}
	// Default access lets members look into what lives.
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", map[string]string{"defaultAccess": "view"}), http.StatusOK)
	ws := hub.CreateWorkspace(t, "bob", org, "the shop")
	uuid := ws.Text("uuid")
	dave := framework.Adding("dave", "member")
	hub.Do(t, framework.InWorkspace("bob", http.MethodPost, org, uuid, "/members", dave), http.StatusCreated)
	left := framework.InOrg("alice", http.MethodDelete, org, "/members/bob?cascade=true", nil)
	hub.Do(t, left, http.StatusNoContent, http.StatusAccepted)
	deleted := func(as string) map[string]string {
		t.Helper()
		a := hub.Do(t, framework.InOrg(as, http.MethodGet, org, "/workspaces?deleted=true", nil), http.StatusOK)
		items, ok := a.JSON["items"].([]any)
		require.True(t, ok, "%s", a.Raw)
		roles := map[string]string{}
		for _, item := range items {
			w := item.(map[string]any)
			graceOf(t, w, defaultGrace)
			roles[fmt.Sprint(w["uuid"])] = fmt.Sprint(w["role"])
		}
		return roles
	}
	require.Empty(t, deleted("alice"))
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, uuid, "", nil), http.StatusOK)
	require.Equal(t, map[string]string{uuid: "admin"}, deleted("alice"))
	own := framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/users/me/memberships?deleted=true"}
	rows := hub.Do(t, own, http.StatusOK)
	require.NotContains(t, namesIn(rows, "workspaceUUID"), uuid, "her own Memberships have nothing of it")
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(deleted("dave")[uuid] == "member", "a member sees %v", deleted("dave"))
	})
	require.Empty(t, deleted("carol"))

	hub.Do(t, framework.InWorkspace("dave", http.MethodPost, org, uuid, "/undelete", nil), http.StatusForbidden)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, uuid, "/undelete", nil), http.StatusOK)
	for _, as := range []string{"alice", "carol", "dave"} {
		require.Empty(t, deleted(as))
	}
	hub.Enters(t, "alice", ws.Text("clusterID"))
}

// O-8, O-13: when the grace period ends, the cascade removes the object and everything in
// it.
func TestO13_TheCascadeLeavesNothing(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub, p := framework.StartHub(t, kcp, root, grace(3*time.Second)), newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	hub.CreateWorkspace(t, "alice", org, "dev")
	ws := hub.CreateWorkspace(t, "alice", org, "prod").Text("uuid")
	hub.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	hub.Do(t, framework.Call{
		As: "alice", Method: http.MethodPost, Path: "/api/orgs/" + org + "/members", Org: org,
		Body: map[string]any{"userRef": map[string]string{"name": "bob"}, "role": "member"},
	}, http.StatusCreated)

	hub.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: "/api/orgs/" + org + "/workspaces/" + ws, Org: org, Workspace: ws}, http.StatusOK)
	gone(t, p.Workspaces(p.OrgPath(org)), ws)
	out, errOut, err := kcp.Kubectl(t, "", root+":orgs:"+org, "get", "memberships", "-o", "name")
	require.NoError(t, err, errOut)
	require.NotContains(t, out, ws)

	hub.Do(t, framework.Call{As: "alice", Method: http.MethodDelete, Path: "/api/orgs/" + org, Org: org}, http.StatusOK)
	p.orgGone(t, org)
	for _, name := range []string{"alice", "bob"} {
		framework.Eventually(t, framework.Long, func() error {
			a := hub.Do(t, framework.Call{As: name, Method: http.MethodGet, Path: "/api/users/me/memberships?deleted=true"}, http.StatusOK)
			items, ok := a.JSON["items"].([]any)
			return framework.Check(ok && len(items) == 0, "%s still has %s", name, a.Raw)
		})
	}
	framework.Eventually(t, framework.Long, func() error {
		me := hub.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
		if used := me.JSON["orgQuota"].(map[string]any)["used"]; used != 0.0 {
			return fmt.Errorf("%v places are still taken", used)
		}
		return nil
	})
}
