package lifecycle

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/framework"
)

// O-8: when a User's grace period ends, the cascade removes the User from all Orgs and
// deletes the personal Org. In an Org that would lose its last admin, the
// longest-standing active member becomes admin. An Org without such a member is
// soft-deleted with a grace period of its own. No object of the User remains.
func TestO8_TheCascadeOfAPersonLeavesNothingOfThem(t *testing.T) {
	t.Parallel()
	root, file := framework.NewRoot(), filepath.Join(t.TempDir(), "audit.log")
	hub := framework.StartHub(t, kcp, root, personal, framework.WithAdmin, auditing(file))
	p := newPlatform(t, root)
	people := []string{"alice", "bob", "dave", "erin", "frank", "grace", "heidi"}
	framework.SignUp(t, hub, people...)
	join := func(by, org, ws string, body map[string]any) {
		t.Helper()
		c := framework.InOrg(by, http.MethodPost, org, "/members", body)
		if ws != "" {
			c = framework.InWorkspace(by, http.MethodPost, org, ws, "/members", body)
		}
		hub.Do(t, c, http.StatusCreated)
	}
	workspace := func(by, org string) (uuid, cluster string) {
		ws := hub.CreateWorkspace(t, by, org, "dev")
		return ws.Text("uuid"), ws.Text("clusterID")
	}
	// Erin is the only admin of this Org. The longest-standing member is soft-deleted and
	// cannot become admin. Among the others, the join time decides and the name does not.
	shared := hub.CreateOrg(t, "erin", "Shared")
	sharedWS, sharedCluster := workspace("erin", shared)
	for _, name := range []string{"dave", "grace", "frank"} {
		// creationTimestamp has a resolution of one second.
		now := time.Now().Unix()
		framework.Eventually(t, framework.Long, func() error {
			if time.Now().Unix() <= now {
				return fmt.Errorf("it is still %d", now)
			}
			return nil
		})
		join("erin", shared, "", framework.Adding(name, "member"))
	}
	join("erin", shared, sharedWS, framework.Adding("frank", "member"))
	hub.Do(t, call{As: "dave", Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)
	// In this Org erin is the only member; frank is a member of its Workspace only.
	alone := hub.CreateOrg(t, "erin", "Alone")
	aloneWS, aloneCluster := workspace("erin", alone)
	join("erin", alone, aloneWS, framework.Adding("frank", "member"))
	// Alice created the third Org. The fourth Org has a second admin.
	foreign := hub.CreateOrg(t, "alice", "Foreign")
	foreignWS, foreignCluster := workspace("alice", foreign)
	join("alice", foreign, "", framework.Adding("erin", "member"))
	join("alice", foreign, foreignWS, framework.Adding("erin", "admin"))
	both := hub.CreateOrg(t, "erin", "Both")
	join("erin", both, "", framework.Adding("bob", "admin"))
	// Erin's personal Org has one more member.
	own, _, home := arrived(t, hub, "erin")
	join("erin", own, "", framework.Adding("bob", "member"))
	u := p.AllUsers(t)["erin"]
	arrived(t, hub, "frank")
	var places []string
	for _, path := range []string{p.OrgPath(own), p.OrgPath(alone)} {
		lc, err := p.LogicalClusters(p.ClusterURL(path)).Get(t.Context(), "cluster", metav1.GetOptions{})
		require.NoError(t, err)
		places = append(places, lc.Annotations["kcp.io/cluster"])
	}
	require.Subset(t, slices.Collect(maps.Keys(logicalClusters(t))), append(slices.Clone(places), home, aloneCluster))

	hub.Do(t, call{As: "erin", Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)
	require.Equal(t, "admin", framework.RolesListed(hub.Do(t, framework.InOrg("grace", http.MethodGet, shared, "/members", nil), http.StatusOK))["erin"], "nothing is taken within the grace")
	p.age(t, "erin", "", "", over())
	gone(t, p.Users(p.UsersPath()), "erin")
	purged := purges(t, file)
	require.Equal(t, map[string]int{"workspaces": 1, "memberships": 3}, purged[own], "her Org, with two rows of hers and the guest's")
	require.Equal(t, map[string]int{"memberships": 7}, purged["erin"], "two in the shared, two where she is alone, two in the foreign, one in the fourth")
	require.Contains(t, hub.Log.String(), `"counts": {"memberships":7}`)

	held := func(org string) map[string]string {
		t.Helper()
		memberships, err := p.MembershipsOf(t, org)
		require.NoError(t, err)
		roles := map[string]string{}
		for name, m := range memberships {
			require.NotEqual(t, "erin", m.Spec.UserRef.Name)
			roles[name] = string(m.Spec.Role)
		}
		return roles
	}
	require.Equal(t, map[string]string{"dave": "member", "grace": "admin", "frank": "member", sharedWS + ".frank": "member"}, held(shared))
	var promoted []audit.Event
	for _, e := range framework.AuditEvents(t, file) {
		if e.Action == "promote" && e.Org == shared && (e.Stage == audit.StageIntent || e.Code == http.StatusOK) {
			promoted = append(promoted, e)
		}
	}
	require.GreaterOrEqual(t, len(promoted), 2, "an intent and an outcome")
	require.Equal(t, "grace", promoted[0].Object)
	require.Equal(t, audit.StageOutcome, promoted[len(promoted)-1].Stage)
	require.Equal(t, map[string]string{"alice": "admin", foreignWS + ".alice": "admin"}, held(foreign))
	require.Equal(t, map[string]string{"bob": "admin"}, held(both))
	p.orgGone(t, own)
	gone(t, p.Indexes(p.UsersPath()), "erin")
	for _, cluster := range []string{sharedCluster, foreignCluster} {
		framework.Eventually(t, framework.Long, func() error {
			if roles := p.RolesIn(t, cluster, "erin"); len(roles) > 0 {
				return fmt.Errorf("erin is bound to %v", roles)
			}
			return nil
		})
	}
	// The new admin has the rights of an admin.
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(framework.InOrg("grace", http.MethodPatch, shared, "", `{"displayName":"Inherited"}`))
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})

	// The Org without an admin gets a full grace period from now on and is listed for
	// platform admins.
	framework.Eventually(t, framework.Long, func() error {
		if pending(t, hub)["Organization/"+alone] == nil {
			return fmt.Errorf("the Org without an admin is not soft-deleted")
		}
		return nil
	})
	var why []audit.Event
	for _, e := range framework.AuditEvents(t, file) {
		if e.Action == "delete organization" && e.Org == alone {
			why = append(why, e)
		}
	}
	require.NotEmpty(t, why)
	require.Equal(t, "erin", why[0].Object)
	require.Equal(t, &audit.Facts{Reason: "lastAdminPurged"}, why[0].Facts)
	require.Equal(t, audit.StageIntent, why[0].Stage)
	requested := graceOf(t, pending(t, hub)["Organization/"+alone], defaultGrace)
	require.WithinDuration(t, time.Now(), requested, framework.Long)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(call{As: "frank", Method: http.MethodGet, Path: "/clusters/" + aloneCluster + "/api/v1/namespaces"})
		if err == nil && (a.Code != http.StatusForbidden || !strings.Contains(a.Text("message"), "was deleted")) {
			err = fmt.Errorf("%d %s", a.Code, a.Raw)
		}
		return err
	})
	kcp.Refuses(t, "frank", aloneCluster)
	p.age(t, "", alone, "", over())
	p.orgGone(t, alone)
	framework.Eventually(t, framework.Long, func() error {
		for _, name := range []string{"bob", "frank"} {
			rows, err := p.RowsOf(t, name)
			if err != nil {
				return err
			}
			for row := range rows {
				if strings.HasPrefix(row, alone) || strings.HasPrefix(row, own) {
					return fmt.Errorf("%s still has %s", name, row)
				}
			}
		}
		return nil
	})
	require.Equal(t, map[string]int{"workspaces": 1, "memberships": 1}, purges(t, file)[alone], "frank's row in the Workspace")
	noneLeft(t, append(slices.Clone(places), home, aloneCluster)...)

	// After the purge, a new sign-up by the same name creates a new User without the old
	// Memberships.
	framework.SignUp(t, hub, "erin")
	require.NotEqual(t, u.UID, p.AllUsers(t)["erin"].UID)
	again, _, _ := arrived(t, hub, "erin")
	require.NotEqual(t, own, again)
	for _, org := range []string{shared, foreign, both, alone} {
		hub.Do(t, framework.InOrg("erin", http.MethodGet, org, "", nil), http.StatusForbidden)
	}
	for _, name := range people {
		if name != "dave" {
			arrived(t, hub, name)
		}
	}
	p.Settles(t, true)
}

// O-13: the cascade of an Org removes its Workspaces and all Memberships first, and the
// audit log has their counts. The cascade of a Workspace removes only its own objects.
func TestO13_TheCascadeCountsWhatItRemovesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	root, file := framework.NewRoot(), filepath.Join(t.TempDir(), "audit.log")
	hub := framework.StartHub(t, kcp, root, auditing(file))
	p := newPlatform(t, root)
	framework.SignUp(t, hub, "alice", "bob", "carol")
	org := hub.CreateOrg(t, "alice", "ACME")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	uuids, clusters := make([]string, 3), make([]string, 3)
	for i := range uuids {
		ws := hub.CreateWorkspace(t, "alice", org, fmt.Sprint("ws ", i))
		uuids[i], clusters[i] = ws.Text("uuid"), ws.Text("clusterID")
		hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, uuids[i], "/members", framework.Adding("carol", "member")), http.StatusCreated)
		hub.Enters(t, "carol", clusters[i])
		_, errOut, err := hub.Kubectl(t, "carol", clusters[i], "create", "configmap", "content")
		require.NoError(t, err, errOut)
	}
	lc, err := p.LogicalClusters(p.ClusterURL(p.OrgPath(org))).Get(t.Context(), "cluster", metav1.GetOptions{})
	require.NoError(t, err)
	own := lc.Annotations["kcp.io/cluster"]

	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, uuids[0], "", nil), http.StatusOK)
	p.age(t, "", org, uuids[0], over())
	gone(t, p.Workspaces(p.OrgPath(org)), uuids[0])
	require.Equal(t, map[string]map[string]int{uuids[0]: {"bots": 0, "memberships": 2}}, purges(t, file))
	p.Settles(t, false)

	// The Org is purged while one of its Workspaces is already soft-deleted.
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, uuids[1], "", nil), http.StatusOK)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "", nil), http.StatusOK)
	p.age(t, "", org, "", over())
	p.orgGone(t, org)
	counted := purges(t, file)
	require.Equal(t, map[string]int{"workspaces": 2, "memberships": 6}, counted[org])
	require.Equal(t, map[string]int{"bots": 0, "memberships": 2}, counted[uuids[1]])
	require.Equal(t, map[string]int{"bots": 0, "memberships": 2}, counted[uuids[2]])
	p.Settles(t, false)
	for _, name := range []string{"alice", "bob", "carol"} {
		rows, err := p.RowsOf(t, name)
		require.NoError(t, err)
		require.Empty(t, rows)
		hub.Do(t, framework.InOrg(name, http.MethodGet, org, "", nil), http.StatusForbidden)
		hub.Do(t, framework.InOrg(name, http.MethodPost, org, "/undelete", nil), http.StatusForbidden)
	}
	noneLeft(t, append(slices.Clone(clusters), own)...)
}
