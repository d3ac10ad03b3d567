package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestOnlyThePersonIsTakenOutOfATenantsBinding(t *testing.T) {
	t.Parallel()
	bob := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "kedge:bob"}
	others := []rbacv1.Subject{
		{Kind: rbacv1.UserKind, Name: "kedge:bobby"},
		{Kind: rbacv1.GroupKind, Name: "kedge:bob"},
		{Kind: rbacv1.ServiceAccountKind, Name: "kedge:bob", Namespace: "default"},
	}
	for _, tc := range []struct {
		name           string
		labels         map[string]string
		subjects, left []rbacv1.Subject
		named          bool
	}{
		{"alone", nil, []rbacv1.Subject{bob}, []rbacv1.Subject{}, true},
		{"twice, among others", nil, append([]rbacv1.Subject{bob, bob}, others...), others, true},
		{"not named", nil, others, others, false},
		{"in the hub's own", map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}, []rbacv1.Subject{bob}, []rbacv1.Subject{bob}, false},
		{"with a label that is not the hub's", map[string]string{v1alpha1.ManagedByLabel: "Helm"}, []rbacv1.Subject{bob}, []rbacv1.Subject{}, true},
	} {
		left, named := tenancy.WithoutPerson(tc.labels, tc.subjects, "kedge:bob")
		require.Equal(t, tc.named, named, tc.name)
		require.Equal(t, tc.left, left, tc.name)
	}
}
