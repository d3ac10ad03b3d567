package tenancy_test

import (
	"encoding/json"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// madeSpare returns a spare with these conditions; false is one that is not True.
func madeSpare(t *testing.T, conditions map[string]bool) *kcptenancyv1alpha1.Workspace {
	t.Helper()
	var status v1alpha1.CommonStatus
	for name, ok := range conditions {
		c := metav1.Condition{Type: name, Status: metav1.ConditionFalse}
		if ok {
			c.Status = metav1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, c)
	}
	raw, err := json.Marshal(status)
	require.NoError(t, err)
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Labels, ws.Annotations = "w", map[string]string{v1alpha1.SpareLabel: "hash"}, map[string]string{v1alpha1.StatusAnnotation: string(raw)}
	ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	return ws
}

func TestSpareOf_isWholeWithEverythingButPeople(t *testing.T) {
	t.Parallel()
	whole := func() map[string]bool {
		return map[string]bool{
			v1alpha1.ConditionReady: false, v1alpha1.ConditionFirstAdmin: false, v1alpha1.ConditionAccessReady: false,
			v1alpha1.ConditionPolicyEnforced: true, v1alpha1.ConditionContentReady: true, v1alpha1.ConditionWatched: true,
		}
	}
	s := tenancy.SpareOf(madeSpare(t, whole()))
	require.True(t, s.Takeable("hash"))
	require.False(t, s.Takeable("another"))
	for _, missing := range []string{v1alpha1.ConditionPolicyEnforced, v1alpha1.ConditionContentReady, v1alpha1.ConditionWatched} {
		conditions := whole()
		conditions[missing] = false
		require.False(t, tenancy.SpareOf(madeSpare(t, conditions)).Takeable("hash"), missing)
	}
	for _, absent := range []string{v1alpha1.ConditionPolicyEnforced, v1alpha1.ConditionAccessReady} {
		conditions := whole()
		delete(conditions, absent)
		require.False(t, tenancy.SpareOf(madeSpare(t, conditions)).Takeable("hash"), absent)
	}
	for name, change := range map[string]func(*kcptenancyv1alpha1.Workspace){
		"not ready in kcp": func(ws *kcptenancyv1alpha1.Workspace) {
			ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseInitializing
		},
		"being deleted": func(ws *kcptenancyv1alpha1.Workspace) { ws.DeletionTimestamp = &metav1.Time{Time: time.Now()} },
		"reserved": func(ws *kcptenancyv1alpha1.Workspace) {
			ws.Annotations[v1alpha1.SpareReservedAnnotation] = `{"user":"alice"}`
		},
		"unreadable": func(ws *kcptenancyv1alpha1.Workspace) { ws.Annotations[v1alpha1.SpareReservedAnnotation] = `{` },
	} {
		ws := madeSpare(t, whole())
		change(ws)
		require.False(t, tenancy.SpareOf(ws).Takeable("hash"), name)
	}
}

func TestReservation_isForOnePerson(t *testing.T) {
	t.Parallel()
	alice, bob := &v1alpha1.User{}, &v1alpha1.User{}
	alice.Name, alice.Spec.Issuer, alice.Spec.Subject = "alice", "i", "a"
	bob.Name, bob.Spec.Issuer, bob.Spec.Subject = "bob", "i", "b"
	for _, r := range []tenancy.Reservation{{User: "alice"}, {Identity: tenancy.IdentityHash("i", "a")}} {
		require.True(t, r.IsFor(alice))
		require.False(t, r.IsFor(bob))
	}
	require.False(t, tenancy.Reservation{}.IsFor(alice))
}

func TestSpareHash_changesWithEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, parts := range [][]any{{"a", "b"}, {"ab"}, {"b", "a"}, {"a", "b", nil}, {[]string{"a"}, "b"}} {
		hash, err := tenancy.SpareHash(parts...)
		require.NoError(t, err)
		require.Empty(t, validation.IsValidLabelValue(hash))
		require.False(t, seen[hash], parts)
		seen[hash] = true
	}
	_, err := tenancy.SpareHash(func() {})
	require.Error(t, err)
}
