package lifecycle

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// withoutShardAdmin gives the hub a kubeconfig without the shard admin. Such a hub cannot
// deactivate logical clusters.
func withoutShardAdmin(t *testing.T) func(*server.Options) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kcp.Kubeconfig)
	require.NoError(t, err)
	for name, c := range config.Contexts {
		if c.AuthInfo == "shard-admin" {
			delete(config.Contexts, name)
		}
	}
	delete(config.AuthInfos, "shard-admin")
	require.NotEmpty(t, config.Contexts[config.CurrentContext])
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return func(o *server.Options) { o.KCPKubeconfig = file }
}

// activity returns the status and the message of the condition Active in an answer.
func activity(t testing.TB, a framework.Answer) (status, message string) {
	t.Helper()
	conditions, _ := a.JSON["conditions"].([]any)
	for _, item := range conditions {
		if c := item.(map[string]any); c["type"] == "Active" {
			return c["status"].(string), c["message"].(string)
		}
	}
	require.Fail(t, "there is no condition Active", "%s", a.Raw)
	return "", ""
}

// O-13: if kcp does not let the hub deactivate logical clusters, the hub itself refuses
// access to deleted objects. A condition reports that kcp does not. Undelete and purge
// work as usual.
func TestO13_WhatCannotBeFrozenIsClosedByTheHubAndSaysSo(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, withoutShardAdmin(t))
	p := newPlatform(t, root)
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	rights := p.RolesIn(t, cluster, "bob")
	for _, c := range []struct {
		name     string
		call     func(method, below string) call
		orgLives bool
		ws       string
	}{
		{"Workspace", func(method, below string) call { return framework.InWorkspace("alice", method, org, ws, below, nil) }, true, ws},
		{"Org", func(method, below string) call { return framework.InOrg("alice", method, org, below, nil) }, false, ""},
	} {
		// kcp's RBAC caches can lag behind the answer.
		framework.Eventually(t, framework.Long, func() error { return shownAs(hub, "bob", org, ws, cluster, true, true) })
		watch := watchAs(t, hub, "bob", cluster)
		deleted := hub.Do(t, c.call(http.MethodDelete, ""), http.StatusOK)
		graceOf(t, deleted.JSON, defaultGrace)
		status, message := activity(t, deleted)
		require.Equal(t, "False", status)
		require.Contains(t, message, "kcp does not let the hub", c.name)
		for _, as := range []string{"alice", "bob"} {
			require.NoError(t, shownAs(hub, as, org, ws, cluster, c.orgLives, false))
		}
		<-watch
		// Requests directly to kcp are refused, because the bindings are gone.
		kcp.Refuses(t, "bob", cluster)
		require.Empty(t, p.RolesIn(t, cluster, "bob"))

		restored := hub.Do(t, c.call(http.MethodPost, "/undelete"), http.StatusOK)
		status, _ = activity(t, restored)
		require.Equal(t, "True", status)
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(framework.InWorkspace("alice", http.MethodGet, org, ws, "", nil))
			if err == nil && a.Text("phase") != "Ready" {
				err = errors.New(string(a.Raw))
			}
			return err
		})
		for _, as := range []string{"alice", "bob"} {
			framework.Eventually(t, framework.Long, func() error { return shownAs(hub, as, org, ws, cluster, true, true) })
		}
		require.Equal(t, rights, p.RolesIn(t, cluster, "bob"))
		_, errOut, err := hub.Kubectl(t, "bob", cluster, "create", "configmap", strings.ToLower(c.name))
		require.NoError(t, err, errOut)
		p.Settles(t, false)
	}
	second := hub.CreateWorkspace(t, "alice", org, "second").Text("uuid")
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, second, "", nil), http.StatusOK)
	p.age(t, "", org, second, over())
	gone(t, p.Workspaces(p.OrgPath(org)), second)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "", nil), http.StatusOK)
	// The purge of a User removes Memberships from soft-deleted Orgs, too.
	hub.Do(t, call{As: "bob", Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)
	p.age(t, "bob", "", "", over())
	gone(t, p.Users(p.UsersPath()), "bob")
	held, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	require.Len(t, held, 2)
	p.age(t, "", org, "", over())
	p.orgGone(t, org)
	p.Settles(t, false)
}
