package access_test

import (
	"encoding/json"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// O-15: bindings follow the Memberships, and a right ends with its Membership.
func TestO15_bindingsFollowTheMemberships(t *testing.T) {
	t.Parallel()
	bob := tenancy.NewMembership("bob", "w", "member")
	r := newRights(t, tenancy.NewMembership("alice", "", "admin"), bob)
	ws := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	kcptest.Change(t, r.KCP, "org", ws, func(ws *kcptenancyv1alpha1.Workspace) { ws.Status.Phase = "Initializing" })
	require.Empty(t, r.pass(t), "nothing is written before kcp has finished")
	r.PutWorkspace("org", "w", "c")
	require.Equal(t, 2, r.reconciler().Missing(key))
	require.Equal(t, 1, r.reconciler().MissingOf(key, "bob"))
	r.reconcile(t)
	require.Equal(t, []string{"kedge:workspace:admin:user:alice", "kedge:workspace:member:user:bob"}, r.names())
	require.Zero(t, r.reconciler().MissingOf(key, "bob"))
	kcptest.Change(t, r.KCP, "org", bob, func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleAdmin })
	r.reconcile(t)
	require.Equal(t, []string{"kedge:workspace:admin:user:alice", "kedge:workspace:admin:user:bob"}, r.names())
	r.Remove("org", bob)
	r.reconcile(t)
	require.Equal(t, []string{"kedge:workspace:admin:user:alice"}, r.names())

	now := metav1.NewTime(r.Clock.Now())
	org := tenancy.NewOrganization("o", "O", "alice")
	forbidden := v1alpha1.CommonStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeactivationForbidden,
	}}}
	status, err := json.Marshal(forbidden)
	require.NoError(t, err)
	for _, deletes := range []func(forbidden bool){
		func(cannot bool) {
			o := org.DeepCopy()
			if o.Status.DeletionRequestedAt = &now; cannot {
				o.Status.CommonStatus = forbidden
			}
			r.Put(kcptest.Orgs, o)
		},
		func(cannot bool) {
			kcptest.Change(t, r.KCP, "org", ws, func(ws *kcptenancyv1alpha1.Workspace) {
				ws.Annotations = map[string]string{v1alpha1.DeletionRequestedAtAnnotation: now.Format(time.RFC3339)}
				if cannot {
					ws.Annotations[v1alpha1.StatusAnnotation] = string(status)
				}
			})
		},
	} {
		deletes(false)
		require.Empty(t, r.pass(t), "what is deactivated stays as it is")
		deletes(true)
		r.reconcile(t)
		require.Empty(t, r.names(), "what is deleted and cannot be deactivated is closed")
		r.Put(kcptest.Orgs, org)
		r.PutWorkspace("org", "w", "c")
		r.reconcile(t)
		require.Equal(t, []string{"kedge:workspace:admin:user:alice"}, r.names())
	}
}
