package workspace

import (
	"testing"

	"github.com/stretchr/testify/require"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// A Membership that changes must not turn a Ready Workspace to Progressing and back.
func TestDelayOf_waitsOnlyForAReadyWorkspace(t *testing.T) {
	t.Parallel()
	with := func(status string) *kcptenancyv1alpha1.Workspace {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
		ws.Annotations = map[string]string{v1alpha1.StatusAnnotation: status}
		return ws
	}
	require.Equal(t, accessDelay, delayOf(with(`{"phase":"Ready"}`)))
	require.Zero(t, delayOf(with(`{"phase":"Progressing"}`)))
	require.Zero(t, delayOf(&kcptenancyv1alpha1.Workspace{}))
	require.Zero(t, delayOf(nil))
}
