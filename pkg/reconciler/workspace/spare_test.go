package workspace_test

import (
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestReconcile_finishesASpareButForThePeople(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.ws.Labels = map[string]string{v1alpha1.SpareLabel: "hash"}
	k.ws.Finalizers = nil
	k.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	for range 3 {
		require.False(t, k.reconcile(t).Ready())
	}
	require.True(t, tenancy.SpareOf(k.ws).Whole)
	require.Empty(t, k.members(), "the creator in its annotation is nobody")
	require.Empty(t, k.ws.Finalizers, "it goes without a cascade")
	require.True(t, k.hasNamespace())
	require.Len(t, k.roles(), 3)

	delete(k.ws.Labels, v1alpha1.SpareLabel)
	k.ws.Finalizers = []string{v1alpha1.CascadeFinalizer}
	k.missing = 0
	for range 2 {
		k.reconcile(t)
	}
	require.True(t, tenancy.WorkspaceOf("", k.ws).Ready())
	require.Equal(t, []string{uuid + ".alice admin"}, k.members())
}
