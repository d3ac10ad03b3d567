package rights

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// roleStatus returns nil if a Membership shows exactly these extra ClusterRoles as
// applied. A condition must contain says for the roles that are not applied.
func (p platform) roleStatus(t testing.TB, org, name string, applied []string, says string) error {
	m, err := p.Memberships(p.OrgPath(org)).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	shown := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRolesApplied)
	ready := meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case m.Status.ObservedGeneration != m.Generation || !slices.Equal(m.Status.AppliedRoles, applied) || shown == nil:
	case says == "" && shown.Status == metav1.ConditionTrue && ready && m.Status.Phase == v1alpha1.PhaseReady:
		return nil
	case says != "" && shown.Status == metav1.ConditionFalse && strings.Contains(shown.Message, says) && !ready:
		return nil
	}
	return framework.Check(false, "status %+v of generation %d", m.Status, m.Generation)
}

// Each extra role of a Membership has a binding of its own. The status shows the role as
// applied or missing. The hub binds the role when its ClusterRole appears, and unbinds it
// when the Membership no longer names it.
func TestExtraRoles_areBoundOneByOneWhenTheyAreThere(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob", "carol")
	kubectl := func(as string, args ...string) {
		t.Helper()
		_, errOut, err := hub.Kubectl(t, as, cluster, args...)
		require.NoError(t, err, errOut)
	}
	const group = "apis.kcp.io"
	exports := func(as string) bool {
		t.Helper()
		return hasInKCP(t, as, cluster, "create", group, "apiexports")
	}
	extra := func(role, user string) string { return tenancy.ExtraBindingName(role, user) }

	// RBAC lets alice grant this permission because she has it herself.
	kubectl("alice", "create", "clusterrole", "auditor", "--verb=create", "--resource=apiexports.apis.kcp.io")
	body := framework.Adding("bob", "member")
	body["roles"] = []map[string]string{{"name": "auditor"}, {"name": "later"}}
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", body), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("carol", "member")), http.StatusCreated)
	name := ws + ".bob"
	framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, name, []string{"auditor"}, "later") })
	require.Equal(t, []string{"auditor", tenancy.ClusterRoleMember}, p.RolesIn(t, cluster, "bob"))
	framework.Eventually(t, framework.Long, func() error { return framework.Check(exports("bob"), "bob does not have it in kcp yet") })
	require.False(t, exports("carol"), "a member as he is, without the extra role")

	// The missing ClusterRole appears. Bob's other bindings stay unchanged.
	before := p.BindingVersions(t, cluster, "bob")
	kubectl("alice", "create", "clusterrole", "later", "--verb=delete", "--resource=apiexports.apis.kcp.io")
	framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, name, []string{"auditor", "later"}, "") })
	after := p.BindingVersions(t, cluster, "bob")
	require.Contains(t, after, extra("later", "bob"))
	delete(after, extra("later", "bob"))
	require.Equal(t, before, after)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(hasInKCP(t, "bob", cluster, "delete", group, "apiexports"), "the role that appeared is not bound")
	})

	// Carol gets one of the roles by a binding of her own. Bob's bindings stay unchanged.
	before = p.BindingVersions(t, cluster, "bob")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/carol", `{"roles":[{"name":"auditor"}]}`), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		return p.roleStatus(t, org, ws+".carol", []string{"auditor"}, "")
	})
	require.Equal(t, before, p.BindingVersions(t, cluster, "bob"))
	held, err := p.BindingsIn(t, cluster)
	require.NoError(t, err)
	for user, roles := range map[string][]string{"bob": {"auditor", "later"}, "carol": {"auditor"}} {
		for _, r := range roles {
			b := held[extra(r, user)]
			require.Len(t, b.Subjects, 1)
			require.Equal(t, user, b.Subjects[0].Name)
			require.Equal(t, r, b.RoleRef.Name)
		}
	}
	require.NotContains(t, held, extra("later", "carol"))

	// The hub removes the binding of a deleted ClusterRole. A leftover binding would grant
	// any later ClusterRole of the same name.
	kubectl("alice", "delete", "clusterrole", "later")
	framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, name, []string{"auditor"}, "later") })
	framework.Eventually(t, framework.Long, func() error {
		_, bound := p.BindingVersions(t, cluster, "bob")[extra("later", "bob")]
		return framework.Check(!bound, "bob is still bound to the role that is gone")
	})
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(!hasInKCP(t, "bob", cluster, "delete", group, "apiexports"), "bob still has the role that is gone")
	})

	// The hub removes bob's binding before it answers. Carol keeps her binding.
	hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", `{"roles":[]}`), http.StatusOK)
	require.Equal(t, []string{tenancy.ClusterRoleMember}, p.RolesIn(t, cluster, "bob"))
	framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, name, nil, "") })
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(!exports("bob"), "bob still has the role that was taken")
	})
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(exports("carol"), "carol has lost the role that is hers")
	})
}

// The hub creates bindings with rights that no tenant has. It refuses reserved
// ClusterRoles over REST, and does not bind them if a Membership names them.
func TestMembership_cannotNameARoleOfThePlatform(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	p := newPlatform(t, hub.Options.RootWorkspace)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob", "carol")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	sudo := framework.Adding("carol", "member")
	sudo["sudo"] = true
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", sudo), http.StatusCreated)
	for _, args := range []string{"cluster-admin", "system:above"} {
		_, errOut, err := kcp.Kubectl(t, "", cluster, "create", "clusterrole", args, "--verb=*", "--resource=*.*")
		require.NoError(t, err, errOut)
	}
	names := []string{"cluster-admin", "system:above", tenancy.ClusterRoleAdmin, "kedge:workspace:sudo:user:carol"}
	for _, name := range names {
		body := map[string]any{"roles": []map[string]string{{"name": name}}}
		a := hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", body), http.StatusBadRequest)
		require.Equal(t, "roles.name", framework.StatusOf(t, a).Details.Causes[0].Field)
		_, err := p.Memberships(p.OrgPath(org)).Patch(t.Context(), ws+".bob", types.MergePatchType, []byte(`{"spec":{"roles":[{"name":"`+name+`"}]}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, ws+".bob", nil, "reserved") })
		require.Equal(t, []string{tenancy.ClusterRoleMember}, p.RolesIn(t, cluster, "bob"))
		require.False(t, hasInKCP(t, "bob", cluster, "delete", "core.kcp.io", "logicalclusters"))
		require.False(t, hasInKCP(t, "bob", cluster, "create", "rbac.authorization.k8s.io", "clusterroles"))
	}
	// The positive control: a Membership may name a ClusterRole of the tenant.
	_, errOut, err := hub.Kubectl(t, "alice", cluster, "create", "clusterrole", "above", "--verb=create", "--resource=clusterroles.rbac.authorization.k8s.io")
	require.NoError(t, err, errOut)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", `{"roles":[{"name":"above"}]}`), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error { return p.roleStatus(t, org, ws+".bob", []string{"above"}, "") })
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(hasInKCP(t, "bob", cluster, "create", "rbac.authorization.k8s.io", "clusterroles"), "it is not bound")
	})
}
