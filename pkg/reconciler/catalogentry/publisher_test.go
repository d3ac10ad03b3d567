package catalogentry_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestPublisher_whoStandsForAnEntry(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	nobody := func(w *world) { w.own = nil }
	for name, c := range map[string]struct {
		change func(*world)
		// problem is a part of the message; empty if the entry is granted.
		problem string
	}{
		"whom the provider names":          {change: func(*world) {}},
		"as everybody":                     {change: func(w *world) { w.own[0].Subjects[0] = subject(rbacv1.GroupKind, "system:authenticated") }},
		"with all rights of the workspace": {change: func(w *world) { w.own[0].RoleRef.Name = "cluster-admin" }},
		"with a role for all exports":      {change: func(w *world) { w.ownRoles["binders"] = bindRole() }},
		"where a Global entry has it":      {change: func(w *world) { nobody(w); w.everybody = true }},
		"the platform": {change: func(w *world) {
			nobody(w)
			w.user = nil
			w.entry.Spec.PublishedBy = &v1alpha1.CatalogPublisher{Platform: true}
		}},
		"nobody":                          {change: func(w *world) { w.entry.Spec.PublishedBy = nil }, problem: "does not say who published it"},
		"whom the provider does not name": {change: nobody, problem: "does not let its publisher, alice"},
		"in a group of others":            {change: func(w *world) { w.own[0].Subjects[0] = subject(rbacv1.GroupKind, "oidc:team") }, problem: "does not let"},
		"a ServiceAccount of that name": {change: func(w *world) {
			w.own[0].Subjects[0] = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "oidc:alice", Namespace: "default"}
		}, problem: "does not let"},
		"with a role for another export":  {change: func(w *world) { w.ownRoles["binders"] = bindRole("gadgets.example.org") }, problem: "does not let"},
		"with a role that is gone":        {change: func(w *world) { delete(w.ownRoles, "binders") }, problem: "does not let"},
		"who is gone":                     {change: func(w *world) { w.user = nil }, problem: "is not active"},
		"who is another of the name":      {change: func(w *world) { w.user.UID = "another" }, problem: "is not active"},
		"whose account is deleted":        {change: func(w *world) { w.user.Status.DeletionRequestedAt = &now }, problem: "is not active"},
		"who was rejected":                {change: func(w *world) { w.user.Spec.Registration = v1alpha1.RegistrationRejected }, problem: "is not active"},
		"who has left the organization":   {change: func(w *world) { w.rows = nil }, problem: "is not a member"},
		"who is in one of its workspaces": {change: func(w *world) { w.rows[0].WorkspaceUUID = wsUUID }, problem: "is not a member"},
		"a member":                        {change: func(w *world) { w.rows[0].Role = v1alpha1.RoleMember }},
		"a member where only admins publish": {change: func(w *world) {
			w.rows[0].Role, w.org.Spec.CatalogEntryCreation = v1alpha1.RoleMember, v1alpha1.WhoAdmin
		}, problem: "is not an admin"},
		"an admin where only admins publish": {change: func(w *world) { w.org.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin }},
		"an admin of its workspace":          {change: func(w *world) { nobody(w); w.entry.Spec.APIExport.Path = ownPath }},
		"an admin of its workspace alone": {change: func(w *world) {
			nobody(w)
			w.entry.Spec.APIExport.Path = ownPath
			w.rows = []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID, Role: v1alpha1.RoleMember}, {OrgUUID: orgUUID, WorkspaceUUID: wsUUID, Role: v1alpha1.RoleAdmin}}
		}},
		"a member of its workspace": {change: func(w *world) {
			w.entry.Spec.APIExport.Path = ownPath
			w.rows = []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID, Role: v1alpha1.RoleMember}, {OrgUUID: orgUUID, WorkspaceUUID: wsUUID, Role: v1alpha1.RoleMember}}
		}, problem: "is not an admin of the workspace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.change(w)
			w.converged(t)
			got := w.condition(v1alpha1.ConditionPublisherMayBind)
			if c.problem == "" {
				require.Equal(t, metav1.ConditionTrue, got.Status, got.Message)
				require.NotEmpty(t, w.bound())
				require.False(t, tenancy.RightEnded(w.entry))
				return
			}
			require.Equal(t, metav1.ConditionFalse, got.Status)
			require.Contains(t, got.Message, c.problem)
			require.Empty(t, w.bound())
			require.True(t, tenancy.RightEnded(w.entry))
			require.Equal(t, v1alpha1.PhaseProgressing, w.entry.Status.Phase)
		})
	}
}

// The grant of the entry names its publisher, and does not vouch for them.
func TestPublisher_whoLosesTheRightLosesTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.audience = []rbacv1.Subject{subject(rbacv1.UserKind, "oidc:alice"), subject(rbacv1.UserKind, "oidc:bob")}
	w.converged(t)
	require.Equal(t, []string{"oidc:alice", "oidc:bob"}, w.bound(), "the control")

	own := w.own
	w.own = nil
	w.converged(t)
	require.Empty(t, w.bound())
	require.NotNil(t, w.entry.Status.Export, "what is enabled goes on")

	w.own = own
	w.converged(t)
	require.Equal(t, []string{"oidc:alice", "oidc:bob"}, w.bound(), "the right came back")
}

// An entry that is granted stays so if its Organization lets only admins publish from now on. One
// that is not granted is judged as a new one.
func TestPublisher_theSettingIsForNewEntries(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.rows[0].Role = v1alpha1.RoleMember
	w.converged(t)
	w.org.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin
	w.converged(t)
	require.Equal(t, []string{"alice"}, w.bound())
	own := w.own
	w.own = nil
	w.converged(t)
	w.own = own
	w.converged(t)
	require.Empty(t, w.bound())
	require.Contains(t, w.condition(v1alpha1.ConditionPublisherMayBind).Message, "only admins may publish")
}

func TestPublisher_keepsTheVerdictWhileKCPIsDown(t *testing.T) {
	t.Parallel()
	for name, granted := range map[string]bool{"granted": true, "not granted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			own := w.own
			if !granted {
				w.own = nil
			}
			w.converged(t)
			before := w.condition(v1alpha1.ConditionPublisherMayBind)
			w.own = map[bool][]*rbacv1.ClusterRoleBinding{true: nil, false: own}[granted]
			w.refused = errors.New("kcp is down")
			_, err := w.converge(t)
			require.ErrorIs(t, err, controller.ErrRetry)
			require.Equal(t, before, w.condition(v1alpha1.ConditionPublisherMayBind))
			require.Equal(t, granted, len(w.bound()) > 0)
			w.refused = nil
			w.converged(t)
			require.Equal(t, !granted, len(w.bound()) > 0, "kcp answers again")
		})
	}
}

// A provider that is away for a moment does not hide the entry: it is not found, and that is all.
func TestPublisher_isNotAskedWithoutTheExport(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.absence, w.own = "its workspace is away", nil
	w.converged(t)
	require.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionPublisherMayBind).Status)
	require.Empty(t, w.bound(), "nothing is granted without the export")
	w.absence = ""
	w.converged(t)
	require.Equal(t, metav1.ConditionFalse, w.condition(v1alpha1.ConditionPublisherMayBind).Status)
}
