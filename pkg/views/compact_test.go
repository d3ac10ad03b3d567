package views

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// fromWire returns a Membership as it is after the transform.
func fromWire(t *testing.T, m *v1alpha1.Membership, alter func(*v1alpha1.Membership)) *v1alpha1.Membership {
	t.Helper()
	at("org1", m)
	m.Kind, m.APIVersion = "Membership", v1alpha1.SchemeGroupVersion.String()
	m.UID, m.ResourceVersion, m.Generation = orgUUID, "1234", 2
	m.CreationTimestamp = metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m.Status.ObservedGeneration, m.Status.Phase = 2, v1alpha1.PhaseProgressing
	for i, kind := range []string{v1alpha1.ConditionUserFound, v1alpha1.ConditionRolesApplied, v1alpha1.ConditionReady} {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFailed, Message: "because of " + kind,
			ObservedGeneration: int64(i), LastTransitionTime: metav1.NewTime(m.CreationTimestamp.Add(time.Duration(i) * time.Hour)),
		})
	}
	alter(m)
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	decoded := &v1alpha1.Membership{}
	require.NoError(t, json.Unmarshal(raw, decoded))
	return decoded
}

func TestCompactMembership_decodesToTheSameObject(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*v1alpha1.Membership){
		"as it is":       func(*v1alpha1.Membership) {},
		"without status": func(m *v1alpha1.Membership) { m.Status = v1alpha1.MembershipStatus{} },
		"one condition":  func(m *v1alpha1.Membership) { m.Status.Conditions = m.Status.Conditions[2:] },
		"another role":   func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleAdmin },
		"with sudo":      func(m *v1alpha1.Membership) { m.Spec.Sudo = true },
		"turned before it was made": func(m *v1alpha1.Membership) {
			m.Status.Conditions[0].LastTransitionTime = metav1.NewTime(m.CreationTimestamp.Add(-time.Hour))
		},
	} {
		for _, workspace := range []string{"", wsUUID} {
			m := fromWire(t, tenancy.NewMembership("alice", workspace, v1alpha1.RoleMember), alter)
			packed := encodeMembership(m)
			require.NotNil(t, packed, "%s %s", name, workspace)
			require.Equal(t, m, packed.Decode("org1", m.Name), "%s %s", name, workspace)
		}
	}
}

func TestCompactMembership_refusesWhatItWouldLose(t *testing.T) {
	t.Parallel()
	at := metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, alter := range map[string]func(*v1alpha1.Membership){
		"a label":            func(m *v1alpha1.Membership) { m.Labels = map[string]string{"a": "b"} },
		"an annotation":      func(m *v1alpha1.Membership) { m.Annotations["a"] = "b" },
		"a finalizer":        func(m *v1alpha1.Membership) { m.Finalizers = []string{"a/b"} },
		"an owner":           func(m *v1alpha1.Membership) { m.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} },
		"being deleted":      func(m *v1alpha1.Membership) { m.DeletionTimestamp = &at },
		"further roles":      func(m *v1alpha1.Membership) { m.Spec.Roles = []v1alpha1.RoleRef{{Name: "editor"}} },
		"applied roles":      func(m *v1alpha1.Membership) { m.Status.AppliedRoles = []string{"editor"} },
		"a generated name":   func(m *v1alpha1.Membership) { m.GenerateName = "a-" },
		"another name":       func(m *v1alpha1.Membership) { m.Name = "another" },
		"another scope":      func(m *v1alpha1.Membership) { m.Spec.Scope = "another" },
		"a UID that is none": func(m *v1alpha1.Membership) { m.UID = "1" },
		"a UID in capitals":  func(m *v1alpha1.Membership) { m.UID = "231A151A-434E-4623-AD6E-69406ABB9387" },
		"no version":         func(m *v1alpha1.Membership) { m.ResourceVersion = "" },
		"an odd version":     func(m *v1alpha1.Membership) { m.ResourceVersion = "007" },
		"a version of words": func(m *v1alpha1.Membership) { m.ResourceVersion = "seven" },
		"more conditions": func(m *v1alpha1.Membership) {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: "Another", LastTransitionTime: at})
		},
		"a condition without a type": func(m *v1alpha1.Membership) { m.Status.Conditions[1].Type = "" },
		"a condition from long ago": func(m *v1alpha1.Membership) {
			m.Status.Conditions[1].LastTransitionTime = metav1.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
		},
	} {
		m := fromWire(t, tenancy.NewMembership("alice", wsUUID, v1alpha1.RoleMember), alter)
		require.Nil(t, encodeMembership(m), name)
	}
}
