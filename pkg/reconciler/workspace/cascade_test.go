package workspace_test

import (
	"fmt"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
)

// Whichever call fails, and whether or not kcp carried it out, the cascade ends in the
// same state.
func TestO13_cascadeGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				m := newMortal(t)
				m.deleted()
				m.Clock.SetTime(m.Clock.Now().Add(grace))
				m.Fails, m.Late = n, late
				stopped := 0
				for m.ws != nil {
					if _, err := m.converge(t); err != nil {
						stopped++
					}
					require.LessOrEqual(t, stopped, 1)
				}
				require.Equal(t, []string{"alice admin", "another.bob member"}, m.members(), "call %d", n)
				require.Equal(t, "other", m.Caches.Bots.InCluster("org1")[0].Name, "call %d", n)
				require.Equal(t, []map[string]int{{"bots": 1, "memberships": 2}}, m.purged, "what went before it was stopped counts")
				if stopped == 0 {
					require.Equal(t, 10, n, "the control: every call has failed once")
					break
				}
			}
		})
	}
}

// A failed removal of the finalizer does not repeat the audit event. After a restart the
// event may be repeated, but it is never lost.
func TestO13_auditsARemovedWorkspaceOnce(t *testing.T) {
	t.Parallel()
	for restarted, want := range map[bool]int{false: 1, true: 4} {
		m := newMortal(t)
		if !restarted {
			m.running = m.reconciler()
		}
		m.deleted()
		m.Clock.SetTime(m.Clock.Now().Add(grace))
		m.holds = 3
		for range 3 {
			_, err := m.converge(t)
			require.ErrorContains(t, err, kcptest.ErrDown.Error())
			require.NotNil(t, m.ws)
		}
		m.converged(t)
		require.Nil(t, m.ws)
		require.Len(t, m.purged, want)
		for _, counts := range m.purged {
			require.Equal(t, map[string]int{"bots": 1, "memberships": 2}, counts)
		}
	}
}

// After the hub's cascade, the Workspace exists until kcp removes its own finalizers.
func TestCascade_doesNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	now := metav1.NewTime(m.Clock.Now())
	m.ws.DeletionTimestamp, m.ws.Finalizers = &now, []string{"core.kcp.io/logicalcluster"}
	m.converged(t)
	require.Empty(t, m.Did)
	require.Empty(t, m.purged)
	require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
}

// A Workspace that kcp never scheduled has no logical cluster to activate for deletion.
func TestCascade_removesAWorkspaceThatWasNeverScheduled(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.ws.Spec.Cluster, m.ws.Status.Phase = "", kcpcorev1alpha1.LogicalClusterPhaseScheduling
	m.deleted()
	m.Clock.SetTime(m.Clock.Now().Add(grace))
	m.converged(t)
	require.Nil(t, m.ws)
	require.NotContains(t, m.Did, "release ")
}
