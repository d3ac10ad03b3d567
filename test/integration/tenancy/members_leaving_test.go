package tenancy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// O-9: the removal of an Org member is refused while Workspace Memberships exist, and the
// answer names these Workspaces. With cascade, the Workspace Memberships are deleted
// before the one of the Org.
func TestO9_ARemovalNamesTheWorkspacesThatStandAgainstIt(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	clusters, names := map[string]string{}, map[string]string{}
	for _, name := range []string{"one", "two"} {
		ws := hub.CreateWorkspace(t, "alice", org, name)
		clusters[ws.Text("uuid")], names[ws.Text("uuid")] = ws.Text("clusterID"), name
	}
	framework.SignUp(t, hub, "bob", "carol", "dave")
	join := func(user string, workspaces bool) {
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(user, "member")), http.StatusCreated)
		for ws := range clusters {
			if workspaces {
				hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding(user, "member")), http.StatusCreated)
			}
		}
	}
	join("bob", true)
	join("carol", false)
	join("dave", true)

	for name, c := range map[string]struct {
		user          string
		plain, at     call
		after, denied int
	}{
		"removed by an admin": {
			"bob",
			framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil),
			framework.InOrg("alice", http.MethodDelete, org, "/members/bob?cascade=true", nil), http.StatusNoContent, http.StatusForbidden,
		},
		"by themselves": {
			"dave",
			framework.InOrg("dave", http.MethodDelete, org, "/memberships/me", nil),
			framework.InOrg("dave", http.MethodDelete, org, "/memberships/me?cascade=true", nil), http.StatusNoContent, http.StatusForbidden,
		},
	} {
		for _, query := range []string{"", "?cascade=false"} {
			plain := c.plain
			plain.Path += query
			refused := framework.StatusOf(t, hub.Do(t, plain, http.StatusConflict))
			require.Contains(t, refused.Message, "cascade=true", name)
			said := map[string]string{}
			for _, cause := range refused.Details.Causes {
				require.EqualValues(t, "WorkspaceMembership", cause.Type)
				said[cause.Field] = cause.Message
			}
			require.Equal(t, names, said, name)
		}
		bad := c.plain
		bad.Path += "?cascade=yes"
		hub.Do(t, bad, http.StatusBadRequest)
		require.Equal(t, "member", hub.Do(t, framework.InOrg(c.user, http.MethodGet, org, "", nil), http.StatusOK).Text("role"), "nothing was removed")

		seen := removals(t, p, org)
		hub.Do(t, c.at, c.after)
		var order []v1alpha1.Scope
		deadline := time.After(framework.Long)
		for len(order) < 3 {
			select {
			case m := <-seen:
				require.Equal(t, c.user, m.Spec.UserRef.Name)
				order = append(order, m.Spec.Scope)
			case <-deadline:
				require.Fail(t, "not all were removed", "%s: %v", name, order)
			}
		}
		require.Equal(t, []v1alpha1.Scope{v1alpha1.ScopeWorkspace, v1alpha1.ScopeWorkspace, v1alpha1.ScopeOrg}, order, name)
		for ws, cluster := range clusters {
			require.Empty(t, p.RolesIn(t, cluster, c.user), "the bindings went before the answer")
			hub.Do(t, framework.InWorkspace(c.user, http.MethodGet, org, ws, "", nil), c.denied)
		}
		hub.Do(t, framework.InOrg(c.user, http.MethodGet, org, "", nil), c.denied)
		framework.Eventually(t, framework.Long, func() error { return p.Consistent(t, org, c.user, clusters) })
	}
	// The positive control: the removal of a member without Workspace Memberships
	// succeeds.
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/carol", nil), http.StatusNoContent)
	require.Equal(t, map[string]string{"alice": "admin"}, framework.RolesListed(hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK)))
}

// removals returns the deleted Memberships of the Org from now on, in order.
func removals(t testing.TB, p platform, org string) <-chan v1alpha1.Membership {
	t.Helper()
	w, err := p.Memberships(p.OrgPath(org)).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	out := make(chan v1alpha1.Membership, 16)
	go func() {
		for e := range w.ResultChan() {
			if m, ok := e.Object.(*v1alpha1.Membership); ok && e.Type == watch.Deleted {
				out <- *m
			}
		}
	}()
	return out
}

// O-9: an Org always has an admin with the ability to act.
func TestO9_TheSoleAdminStays(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithAdmin)
	org := hub.CreateOrg(t, "alice", "ACME")
	framework.SignUp(t, hub, "bob", "heidi")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	endings := func(as string) []call {
		return []call{
			framework.InOrg(as, http.MethodPatch, org, "/members/alice", framework.WithRole("member")),
			framework.InOrg(as, http.MethodDelete, org, "/members/alice", nil),
			framework.InOrg(as, http.MethodDelete, org, "/members/alice?cascade=true", nil),
			framework.InOrg(as, http.MethodDelete, org, "/memberships/me", nil),
		}
	}
	sole := func(c call) {
		t.Helper()
		a := hub.Do(t, c, http.StatusConflict)
		require.Equal(t, []string{"SoleAdmin"}, framework.CausesOf(t, a))
		require.Contains(t, framework.StatusOf(t, a).Message, "only admin")
		require.Equal(t, "admin", hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "", nil), http.StatusOK).Text("role"))
	}
	for _, c := range endings("alice") {
		sole(c)
	}
	hub.Do(t, framework.InOrg("bob", http.MethodDelete, org, "/memberships/me", nil), http.StatusNoContent)

	// A second admin does not count while soft-deleted or not approved.
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	active := func(want bool) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error {
			for _, item := range hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK).JSON["items"].([]any) {
				if m := item.(map[string]any); m["user"] == "bob" && m["active"] != want {
					return fmt.Errorf("%v", m)
				}
			}
			return nil
		})
	}
	for name, out := range map[string]struct{ away, back call }{
		"soft-deleted": {
			call{As: "bob", Method: http.MethodDelete, Path: "/api/users/me"},
			call{As: "bob", Method: http.MethodPost, Path: "/api/users/me/undelete"},
		},
		"not approved": {framework.Registering("bob", "Pending"), framework.Registering("bob", "Approved")},
	} {
		t.Log(name)
		hub.Do(t, out.away, http.StatusOK, http.StatusAccepted)
		active(false)
		for _, c := range endings("alice") {
			sole(c)
		}
		hub.Do(t, out.back, http.StatusOK)
		active(true)
	}

	// With a second admin, each of the three requests succeeds.
	hub.Do(t, endings("alice")[0], http.StatusOK)
	hub.Do(t, framework.InOrg("bob", http.MethodPatch, org, "/members/alice", framework.WithRole("admin")), http.StatusOK)
	hub.Do(t, endings("bob")[1], http.StatusNoContent)
	hub.Do(t, framework.InOrg("bob", http.MethodPost, org, "/members", framework.Adding("alice", "admin")), http.StatusCreated)
	hub.Do(t, endings("alice")[3], http.StatusNoContent)
	require.Equal(t, map[string]string{"bob": "admin"}, framework.RolesListed(hub.Do(t, framework.InOrg("bob", http.MethodGet, org, "/members", nil), http.StatusOK)))
}

// O-9: the next hub completes a decision of a hub that has died. The test writes the
// state that kcp has after a crash between the decision and its first step, and after
// that step.
func TestO9_ADecisionIsCarriedOutByTheNextHub(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	clusters := map[string]string{}
	var gone string
	for _, name := range []string{"one", "two"} {
		ws := hub.CreateWorkspace(t, "alice", org, name)
		gone = ws.Text("uuid")
		clusters[gone] = ws.Text("clusterID")
	}
	people := []string{"bob", "carol", "dave", "erin", "frank"}
	framework.SignUp(t, hub, people...)
	for _, user := range people {
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(user, "admin")), http.StatusCreated)
		for ws := range clusters {
			hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding(user, "member")), http.StatusCreated)
		}
	}
	hub.Stop(t)

	held, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	change := func(user string, role v1alpha1.Role, cascade bool) v1alpha1.MembershipChange {
		return v1alpha1.MembershipChange{
			User: user, UID: held[user].UID, Generation: held[user].Generation,
			Role: role, Cascade: cascade, RequestedAt: metav1.NowMicro(),
		}
	}
	changes := []v1alpha1.MembershipChange{
		change("bob", "", true), change("carol", v1alpha1.RoleMember, false), change("dave", "", true),
		change("erin", "", true), change("frank", "", true),
	}
	// For dave, the first step is already done. For erin the UID differs and for frank
	// the generation differs, so these decisions are void.
	require.NoError(t, p.Memberships(p.OrgPath(org)).Delete(t.Context(), gone+".dave", metav1.DeleteOptions{}))
	changes[3].UID = "00000000-0000-4000-8000-000000000000"
	changes[4].Generation++
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"membershipChanges": changes}})
	require.NoError(t, err)
	_, err = p.Organizations(p.OrgsPath()).Patch(t.Context(), org, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)

	next := framework.StartHub(t, kcp, root)
	framework.Eventually(t, framework.Long, func() error {
		o, err := p.Organizations(p.OrgsPath()).Get(t.Context(), org, metav1.GetOptions{})
		if err == nil && (len(o.Spec.MembershipChanges) > 0 || o.Status.Phase != v1alpha1.PhaseReady || o.Status.ObservedGeneration != o.Generation) {
			err = fmt.Errorf("still %v, %v", o.Spec.MembershipChanges, o.Status)
		}
		return err
	})
	left, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	for _, user := range []string{"bob", "dave"} {
		for ws := range clusters {
			require.NotContains(t, left, ws+"."+user)
		}
		require.NotContains(t, left, user)
	}
	require.Equal(t, v1alpha1.RoleMember, left["carol"].Spec.Role)
	for _, user := range []string{"erin", "frank"} {
		require.Equal(t, v1alpha1.RoleAdmin, left[user].Spec.Role)
		require.Equal(t, held[user].UID, left[user].UID)
	}
	for _, user := range people {
		framework.Eventually(t, framework.Long, func() error { return p.Consistent(t, org, user, clusters) })
	}
	framework.Eventually(t, framework.Long, func() error {
		a := next.Do(t, framework.InOrg("bob", http.MethodGet, org, "", nil), http.StatusForbidden, http.StatusOK)
		if a.Code == http.StatusOK {
			return fmt.Errorf("bob is still let in")
		}
		return nil
	})
	require.Equal(t, "admin", next.Do(t, framework.InOrg("frank", http.MethodGet, org, "", nil), http.StatusOK).Text("role"))
}

// O-9: adding a member does not report an existing Membership as success while a decided
// removal is pending.
func TestO9_AMemberWhoIsBeingRemovedIsNotAddedByAnAnswer(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	framework.SignUp(t, hub, "bob")
	add := framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member"))
	hub.Do(t, add, http.StatusCreated)
	hub.Do(t, add, http.StatusOK)
	held, err := p.MembershipsOf(t, org)
	require.NoError(t, err)
	amend := func(operation any, spec map[string]any) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.OperationAnnotation: operation}}, "spec": spec,
		})
		require.NoError(t, err)
		_, err = p.Organizations(p.OrgsPath()).Patch(t.Context(), org, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	// The annotation delays the controller, so the removal stays pending.
	amend(v1alpha1.OperationIgnore, map[string]any{"membershipChanges": []v1alpha1.MembershipChange{{
		User: "bob", UID: held["bob"].UID, Generation: held["bob"].Generation, RequestedAt: metav1.NowMicro(),
	}}})
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(add)
		if err == nil {
			err = framework.Equal(http.StatusConflict, a.Code)
		}
		return err
	})
	amend(nil, map[string]any{})
	framework.Eventually(t, framework.Long, func() error {
		left, err := p.MembershipsOf(t, org)
		if _, ok := left["bob"]; err == nil && ok {
			err = fmt.Errorf("bob is still there")
		}
		return err
	})
	hub.Do(t, add, http.StatusCreated)
}
