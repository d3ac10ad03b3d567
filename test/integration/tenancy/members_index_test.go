package tenancy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// visible is the time within which every index has a rename (O-1). The log has the
// measured time; the test waits longer, because other tests use the same machine.
const visible = time.Second

// O-1, O-4: a rename of the Org or of a Workspace reaches the index of every member
// within a second, on every hub.
func TestO1_ARenameIsInEverybodysIndexWithinASecond(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	p := newPlatform(t, hubs[0].Options.RootWorkspace)
	org := hubs[0].CreateOrg(t, "alice", "Before")
	made := hubs[0].CreateWorkspace(t, "alice", org, "before")
	ws := made.Text("uuid")
	people := []string{"alice", "bob", "carol", "dave"}
	framework.SignUp(t, hubs[0], people...)
	for _, user := range people[1:] {
		hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(user, "member")), http.StatusCreated)
		hubs[0].Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding(user, "member")), http.StatusCreated)
	}
	everywhere := func(orgName, wsName string) error {
		for _, user := range people {
			rows, err := p.RowsOf(t, user)
			if err != nil {
				return err
			}
			maps.DeleteFunc(rows, func(_ string, e v1alpha1.MembershipIndexEntry) bool { return e.OrgUUID != org })
			if e := rows[org+"/"]; len(rows) != 2 || e.OrgDisplayName != orgName {
				return fmt.Errorf("%s has the Org as %q", user, e.OrgDisplayName)
			}
			if e := rows[org+"/"+ws]; e.OrgDisplayName != orgName || e.WorkspaceDisplayName != wsName || e.ClusterID != made.Text("clusterID") {
				return fmt.Errorf("%s has the Workspace as %v", user, e)
			}
		}
		for _, hub := range hubs {
			a, err := hub.Try(call{As: "dave", Method: http.MethodGet, Path: "/api/users/me/memberships"})
			if err != nil {
				return err
			}
			items, _ := a.JSON["items"].([]any)
			for _, item := range items {
				e := item.(map[string]any)
				if e["orgUUID"] != org {
					continue
				}
				if e["orgDisplayName"] != orgName || e["workspaceDisplayName"] != nil && e["workspaceDisplayName"] != wsName {
					return fmt.Errorf("a hub shows %v", e)
				}
			}
		}
		return nil
	}
	framework.Eventually(t, framework.Long, func() error { return everywhere("Before", "before") })
	for _, c := range []struct {
		what            string
		patch           call
		orgName, wsName string
	}{
		{"the Org", framework.InOrg("alice", http.MethodPatch, org, "", `{"displayName":"After"}`), "After", "before"},
		{"the Workspace", framework.InWorkspace("alice", http.MethodPatch, org, ws, "", `{"displayName":"after"}`), "After", "after"},
		{"the Org, to what others are called", framework.InOrg("alice", http.MethodPatch, org, "", `{"displayName":"after"}`), "after", "after"},
	} {
		renamed := hubs[0].Do(t, c.patch, http.StatusOK)
		began := time.Now()
		framework.Eventually(t, framework.Long, func() error { return everywhere(c.orgName, c.wsName) })
		t.Logf("%s: everywhere %s after the answer; %s is promised", c.what, time.Since(began).Round(time.Millisecond), visible)
		require.Contains(t, []string{org, ws}, renamed.Text("uuid"), "a rename moves nothing")
	}
	require.Equal(t, made.Text("clusterID"), hubs[1].Do(t, framework.InWorkspace("dave", http.MethodGet, org, ws, "", nil), http.StatusOK).Text("clusterID"))
}

// O-3, O-4: the index is derived from Memberships: the hub restores a deleted index with
// all fields of every entry.
func TestO3_DeletingEveryIndexLosesNothing(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	people := []string{"alice", "bob", "carol", "dave"}
	framework.SignUp(t, hub, people...)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("carol", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("dave", "member")), http.StatusCreated)

	// An Org from GitOps has no creator. The user of the oldest admin Membership counts
	// as its first admin.
	const given = "11111111-2222-4333-8444-555555555555"
	o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: given}, Spec: v1alpha1.OrganizationSpec{DisplayName: "Given"}}
	_, err := p.Organizations(p.OrgsPath()).Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
	framework.Eventually(t, framework.Long, func() error {
		o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), given, metav1.GetOptions{})
		if err == nil && o.Status.Phase != v1alpha1.PhaseReady {
			err = fmt.Errorf("%v", o.Status)
		}
		return err
	})
	for _, m := range []struct {
		user string
		role v1alpha1.Role
	}{{"bob", v1alpha1.RoleMember}, {"dave", v1alpha1.RoleAdmin}} {
		membership := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Name: m.user}}
		membership.Spec = v1alpha1.MembershipSpec{UserRef: v1alpha1.NamedRef{Name: m.user}, Scope: v1alpha1.ScopeOrg, Role: m.role}
		_, err := p.Memberships(p.OrgPath(given)).Create(t.Context(), membership, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	// The creator counts as the first admin even after leaving the Org.
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/memberships/me?cascade=true", nil), http.StatusNoContent)

	created := map[string]metav1.Time{}
	for _, uuid := range []string{org, given} {
		o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), uuid, metav1.GetOptions{})
		require.NoError(t, err)
		created[uuid] = o.CreationTimestamp
	}
	row := func(uuid, name, first string, role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
		return v1alpha1.MembershipIndexEntry{OrgUUID: uuid, OrgDisplayName: name, OrgCreatedAt: created[uuid], OrgFirstAdmin: first, Role: role}
	}
	inWS := row(org, "ACME", "alice", v1alpha1.RoleMember)
	inWS.WorkspaceUUID, inWS.WorkspaceDisplayName, inWS.ClusterID = ws, "platform", cluster
	want := map[string]map[string]v1alpha1.MembershipIndexEntry{
		"alice": {},
		"bob":   {org + "/": row(org, "ACME", "alice", v1alpha1.RoleAdmin), given + "/": row(given, "Given", "dave", v1alpha1.RoleMember)},
		"carol": {org + "/": row(org, "ACME", "alice", v1alpha1.RoleMember)},
		"dave":  {org + "/" + ws: inWS, given + "/": row(given, "Given", "dave", v1alpha1.RoleAdmin)},
	}
	right := func() error {
		for user, rows := range want {
			got, err := p.RowsOf(t, user)
			if err != nil {
				return err
			}
			if !apiequality.Semantic.DeepEqual(rows, got) {
				return fmt.Errorf("%s: %v instead of %v", user, got, rows)
			}
		}
		return nil
	}
	framework.Eventually(t, framework.Long, right)
	for name, victims := range map[string][]string{"one": {"bob"}, "all": people} {
		old := map[string]types.UID{}
		for _, user := range victims {
			index, err := p.Indexes(p.UsersPath()).Get(t.Context(), user, metav1.GetOptions{})
			require.NoError(t, err)
			old[user] = index.UID
			require.NoError(t, p.Indexes(p.UsersPath()).Delete(t.Context(), user, metav1.DeleteOptions{}))
		}
		t.Log(name)
		framework.Eventually(t, framework.Long, right)
		for user, uid := range old {
			index, err := p.Indexes(p.UsersPath()).Get(t.Context(), user, metav1.GetOptions{})
			require.NoError(t, err)
			require.NotEqual(t, uid, index.UID, "it was made anew")
		}
	}
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(framework.InOrg("dave", http.MethodPatch, given, "", `{"displayName":"Given"}`))
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
	for user, rows := range want {
		shown := hub.Do(t, call{As: user, Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK).JSON["items"].([]any)
		require.Len(t, shown, len(rows))
		for _, item := range shown {
			e := item.(map[string]any)
			workspace, _ := e["workspaceUUID"].(string)
			row := rows[fmt.Sprint(e["orgUUID"])+"/"+workspace]
			require.Equal(t, row.OrgFirstAdmin, e["orgFirstAdmin"])
			require.Equal(t, row.OrgCreatedAt.UTC().Format(time.RFC3339), e["orgCreatedAt"])
		}
	}
	require.Equal(t, "dave", hub.Do(t, framework.InOrg("bob", http.MethodGet, given, "", nil), http.StatusOK).Text("firstAdmin"))
	require.Equal(t, "alice", hub.Do(t, framework.InOrg("carol", http.MethodGet, org, "", nil), http.StatusOK).Text("firstAdmin"))
}

// O-3: a forged index entry grants no access while it exists, and the controller repairs
// it.
func TestO3_AForgedIndexOpensNothing(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob", "erin")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	alices, err := p.Indexes(p.UsersPath()).Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, alices.Spec.Entries, 2)
	before := map[string]map[string]v1alpha1.MembershipIndexEntry{}
	write := func(user string, patch map[string]any) {
		t.Helper()
		raw, err := json.Marshal(patch)
		require.NoError(t, err)
		_, err = p.Indexes(p.UsersPath()).Patch(t.Context(), user, types.MergePatchType, raw, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	operation := func(value any) map[string]any {
		return map[string]any{"annotations": map[string]any{v1alpha1.OperationAnnotation: value}}
	}
	for _, user := range []string{"erin", "bob"} {
		before[user], err = p.RowsOf(t, user)
		require.NoError(t, err)
		// The operation annotation stops the repair, so the requests below are refused
		// while the forged entry exists.
		entries := slices.Clone(alices.Spec.Entries)
		entries[1].WorkspaceDisplayName = "forged"
		write(user, map[string]any{"metadata": operation(v1alpha1.OperationIgnore), "spec": map[string]any{"entries": entries}})
	}
	// Bob's index was patched last. The cache is current when it shows the forged name in
	// bob's real entry.
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(call{As: "bob", Method: http.MethodGet, Path: "/api/users/me/memberships"})
		if err == nil && !bytes.Contains(a.Raw, []byte(`"forged"`)) {
			err = fmt.Errorf("%s", a.Raw)
		}
		return err
	})
	credential := func(as string) call {
		return call{As: as, Method: http.MethodPost, Path: "/api/credentials", Body: map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
			"spec": map[string]any{"interactive": false, "cluster": map[string]any{"server": hub.URL + "/clusters/" + cluster}},
		}}
	}
	entering := func(as string) []call {
		return []call{
			framework.InWorkspace(as, http.MethodGet, org, ws, "", nil),
			{As: as, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"},
			credential(as),
		}
	}
	admins := func(as string) []call {
		return []call{
			framework.InOrg(as, http.MethodGet, org, "", nil),
			framework.InOrg(as, http.MethodGet, org, "/members", nil),
			framework.InOrg(as, http.MethodPatch, org, "", `{"displayName":"ACME"}`),
			framework.InWorkspace(as, http.MethodPatch, org, ws, "", `{"displayName":"platform"}`),
		}
	}
	all := func(calls []call, code int) {
		t.Helper()
		for _, c := range calls {
			hub.Do(t, c, code)
		}
	}
	all(append(entering("erin"), admins("erin")...), http.StatusForbidden)
	all(admins("bob"), http.StatusForbidden)
	require.Empty(t, hub.Do(t, call{As: "erin", Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK).JSON["items"])
	require.Empty(t, hub.Do(t, call{As: "erin", Method: http.MethodGet, Path: "/api/orgs"}, http.StatusOK).JSON["items"])
	// The forged entry still exists, and real Memberships still grant access.
	forged, err := p.RowsOf(t, "erin")
	require.NoError(t, err)
	require.Len(t, forged, 2)
	all(entering("bob"), http.StatusOK)
	require.Equal(t, "member", hub.Do(t, framework.InWorkspace("bob", http.MethodGet, org, ws, "", nil), http.StatusOK).Text("role"))
	all(append(entering("alice"), admins("alice")...), http.StatusOK)

	for _, user := range []string{"bob", "erin"} {
		write(user, map[string]any{"metadata": operation(v1alpha1.OperationReconcile)})
	}
	// Without the annotation the controller repairs a forged entry at once.
	for user, rows := range before {
		mended := func() error {
			index, err := p.Indexes(p.UsersPath()).Get(t.Context(), user, metav1.GetOptions{})
			if err != nil {
				return err
			}
			got, err := p.RowsOf(t, user)
			if err == nil && (!apiequality.Semantic.DeepEqual(rows, got) || len(index.Annotations[v1alpha1.OperationAnnotation]) > 0) {
				err = fmt.Errorf("%s: %v instead of %v", user, got, rows)
			}
			return err
		}
		framework.Eventually(t, framework.Long, mended)
		write(user, map[string]any{"spec": map[string]any{"entries": alices.Spec.Entries}})
		framework.Eventually(t, framework.Long, mended)
	}
	all(append(entering("erin"), admins("erin")...), http.StatusForbidden)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(entering("bob")[0])
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
}
