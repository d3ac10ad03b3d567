package organization_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO13_deactivatesAndKeepsADeletedOrg(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	began := m.Clock.Now()
	m.deleted()
	for _, c := range []struct{ passed, left time.Duration }{
		{0, grace}, {-10 * time.Minute, grace + 10*time.Minute}, {time.Hour, grace - time.Hour}, {grace - time.Nanosecond, time.Nanosecond},
	} {
		m.Clock.SetTime(began.Add(c.passed))
		m.Did = nil
		after := m.converged(t)
		require.Equal(t, c.left, after, "it is looked at again when it is over")
		require.Equal(t, []string{"freeze ws1", "freeze ws2", "freeze ws3", "freeze org1"}, m.Did[:4], "what is in it first: their state is written there")
		require.NotContains(t, m.Did, removal)
		require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
		require.Equal(t, v1alpha1.ReasonWaiting, m.active().Reason)
		require.Contains(t, m.active().Message, "undeleted")
	}
	m.Clock.SetTime(began.Add(grace))
	m.Did, m.hold = nil, true
	require.Equal(t, 15*time.Second, m.converged(t), "purges are held after a restore")
	require.NotNil(t, m.org)
	require.Equal(t, v1alpha1.ReasonWaiting, m.active().Reason)
	m.Did, m.hold = nil, false
	m.converged(t)
	require.Nil(t, m.org)
	require.Nil(t, m.ws)
	require.Empty(t, m.children())
	require.Empty(t, m.members())
	require.Equal(t, []map[string]int{{"workspaces": 3, "memberships": 3}}, m.purged)
	index := func(what string) int {
		i := slices.Index(m.Did, what)
		require.GreaterOrEqual(t, i, 0, "%s: %v", what, m.Did)
		return i
	}
	require.Less(t, index("thaw org1"), index("delete workspaces/w1 in org1"))
	require.Less(t, index("delete workspaces/w3 in org1"), index("delete memberships/alice in org1"), "children before parents")
	require.Less(t, index("delete memberships/w1.bob in org1"), index("delete workspaces/"+uuid+" in orgs"))
}

func TestO13_keepsDeletedWorkspacesOfAnUndeletedOrgInactive(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.converged(t)
	m.Did = nil
	m.mark(nil)
	m.converged(t)
	require.Equal(t, []string{"thaw org1", "thaw ws1", "thaw ws2"}, m.Did[:3])
	require.Equal(t, map[string]bool{"ws3": true}, m.frozen)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	m.Did = nil
	m.converged(t)
	require.Empty(t, m.Did, "it is opened once")
}

// A leader leaves this state if it stops while it deactivates the Org.
func TestO11_activatesAnOrgThatIsNotDeleted(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.converged(t)
	m.Did = nil
	m.frozen["org1"] = true
	m.converged(t)
	require.Contains(t, m.Did, "thaw org1")
	require.Empty(t, m.frozen["org1"])
}

// A Workspace is soft-deleted and deactivated while the Workspaces of its Org are being
// activated.
func TestO13_keepsAWorkspaceDeletedMeanwhileInactive(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.converged(t)
	m.thawing = func(cluster string) {
		if cluster == "ws2" {
			m.child("w2", "ws2", m.marked)
			m.frozen["ws2"] = true
		}
	}
	m.mark(nil)
	m.converged(t)
	require.Equal(t, map[string]bool{"ws2": true, "ws3": true}, m.frozen)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
}

// Workspaces that kcp is still deleting are neither deactivated nor activated. Those that
// it has not finished creating are not deactivated.
func TestO13_deactivationLeavesOutUnfinishedWorkspaces(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.child("w1", "ws1", func(ws *kcptenancyv1alpha1.Workspace) {
		ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseInitializing
	})
	m.child("w2", "ws2", m.leaving)
	m.child("w3", "", func(ws *kcptenancyv1alpha1.Workspace) {
		ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseScheduling
	})
	m.deleted()
	m.converged(t)
	require.Equal(t, []string{"freeze org1"}, slices.Compact(m.Did))
	m.Did = nil
	m.mark(nil)
	m.converged(t)
	require.Equal(t, []string{"thaw org1", "thaw ws1"}, m.Did[:2])
	require.NotContains(t, m.Did, "thaw ")
	require.NotContains(t, m.Did, "thaw ws2")
}

func TestO13_deactivationGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		m := newMortal(t)
		m.deleted()
		m.Fails = m.Made + n
		_, err := m.converge(t)
		require.ErrorIs(t, err, kcptest.ErrDown)
		require.Equal(t, v1alpha1.ReasonFailed, m.active().Reason, "it does not say that it is frozen")
		require.NotContains(t, m.active().Message, kcptest.ErrDown.Error())
		m.converged(t)
		require.Equal(t, map[string]bool{"org1": true, "ws1": true, "ws2": true, "ws3": true}, m.frozen)
	}
	for n := 1; n <= 3; n++ {
		m := newMortal(t)
		m.deleted()
		m.converged(t)
		m.mark(nil)
		m.Fails = m.Made + n
		_, err := m.converge(t)
		require.ErrorIs(t, err, kcptest.ErrDown)
		require.NotEqual(t, v1alpha1.PhaseReady, m.phase())
		m.converged(t)
		require.Equal(t, map[string]bool{"ws3": true}, m.frozen)
		require.Equal(t, v1alpha1.PhaseReady, m.phase())
	}
}

func TestOrganization_reportsForbiddenDeactivation(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.refused = errs.New(errs.Forbidden, "it needs another kubeconfig")
	m.deleted()
	after := m.converged(t)
	require.Equal(t, time.Minute, after, "kcp is asked again")
	require.Equal(t, v1alpha1.ReasonDeactivationForbidden, m.active().Reason)
	require.Contains(t, m.active().Message, "it needs another kubeconfig")
	m.refused = kcptest.ErrDown
	_, err := m.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)

	// After kcp's admin has granted the right, the hub recovers without a restart.
	m.refused = nil
	require.Equal(t, grace, m.converged(t))
	require.True(t, m.frozen["org1"])
	require.Equal(t, v1alpha1.ReasonWaiting, m.active().Reason)
}

// A Workspace that kcp deactivates in part keeps neither the others active nor the deletion from
// going on.
func TestOrganization_goesOnAfterAPartialDeactivation(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.full = "ws1"
	m.deleted()
	require.Equal(t, grace, m.converged(t))
	require.True(t, m.frozen["org1"])
	require.True(t, m.frozen["ws2"])
	require.Equal(t, v1alpha1.ReasonWaiting, m.active().Reason)
	require.Contains(t, m.active().Message, "watches stay open")
	m.Clock.SetTime(m.Clock.Now().Add(grace))
	m.converged(t)
	require.Contains(t, m.Did, removal)
}

func TestO13_neverCarriesOutAWithdrawnDeletion(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.Clock.SetTime(m.Clock.Now().Add(grace))
	m.withdrawn = func() { m.mark(nil) }
	m.converged(t)
	require.NotNil(t, m.org)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	require.Len(t, m.members(), 3)
	require.Len(t, m.children(), 3)
	m.withdrawn = nil
	long := m.Clock.Now().Add(-2 * grace)
	m.mark(&long)
	m.converged(t)
	require.Nil(t, m.org, "the control: one that stands is")
}

// A hub that was down for the whole grace period can find an Org without the finalizer.
// The hub adds the finalizer before the deletion. Without it, the objects in the Org
// would remain.
func TestO13_removesNothingBeforeTheFinalizerIsInKcp(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.org.Finalizers = nil
	m.deleted()
	m.Clock.SetTime(m.Clock.Now().Add(2 * grace))
	m.converged(t)
	require.Nil(t, m.org)
	require.Empty(t, m.children())
	require.Empty(t, m.members())
	require.Nil(t, m.ws)
}

// Whichever call fails, and whether or not kcp carried it out, the cascade ends in the
// same state. The counts in the audit event include all objects.
func TestO13_cascadeGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			t.Parallel()
			m := newMortal(t)
			org, ws := m.org, m.ws
			for n := 1; ; n++ {
				m.populate()
				m.org, m.ws, m.purged = org.DeepCopy(), ws.DeepCopy(), nil
				// A read is the same whether its request or its answer is lost.
				m.reads = !late
				m.deleted()
				m.Clock.SetTime(m.Clock.Now().Add(grace))
				m.Made, m.Fails, m.Late = 0, n, late
				stopped := 0
				for m.org != nil {
					if _, err := m.converge(t); err != nil {
						require.True(t, errors.Is(err, kcptest.ErrDown) || apierrors.IsInternalError(err), "%v", err)
						stopped++
					}
					require.LessOrEqual(t, stopped, 1)
				}
				require.Empty(t, m.children(), "call %d", n)
				require.Empty(t, m.members(), "call %d", n)
				require.Nil(t, m.ws)
				require.Equal(t, []map[string]int{{"workspaces": 3, "memberships": 3}}, m.purged)
				if stopped == 0 {
					require.Greater(t, n, map[bool]int{false: 16, true: 12}[late], "the control: every call has failed once")
					break
				}
			}
		})
	}
}

// The cascade waits for Workspaces that are terminating, and does not delete them again.
func TestO13_parentsWaitForTheirChildren(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.removed()
	m.clear("w2", "w3")
	m.child("w1", "ws1", m.leaving)
	m.converged(t)
	require.NotContains(t, m.Did, "delete workspaces/w1 in org1")
	require.Len(t, m.members(), 3)
	require.NotNil(t, m.ws)
	require.Contains(t, m.active().Message, "1 workspaces are being removed")
	m.clear("w1")
	m.converged(t)
	require.Nil(t, m.org)
}

// The cascade waits for CatalogEntries, whose controller removes what they left in the
// workspaces of providers.
func TestO13_theWorkspaceWaitsForCatalogEntries(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.removed()
	m.clear("w1", "w2", "w3")
	entries := []*v1alpha1.CatalogEntry{{}, {}}
	for i, name := range []string{"gadgets", "widgets"} {
		entries[i].Name, entries[i].Finalizers = name, []string{v1alpha1.CascadeFinalizer}
		m.Put("org1", entries[i])
	}
	m.converged(t)
	require.Contains(t, m.Did, "delete catalogentries/widgets in org1")
	require.NotNil(t, m.ws)
	require.Contains(t, m.active().Message, "2 catalog entries are being removed")
	for _, e := range entries {
		m.Remove("org1", e)
	}
	m.converged(t)
	require.Nil(t, m.org)
}

// The cascade ends for an Org without a workspace: kcp never scheduled it or has deleted
// it.
func TestO13_removesAnOrgWithoutAWorkspace(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(*kcp){
		"never placed":  func(m *kcp) { m.ws.Spec.Cluster = "" },
		"never made":    func(m *kcp) { m.ws = nil },
		"being removed": func(m *kcp) { m.leaving(m.ws) },
	} {
		m := newMortal(t)
		arrange(m)
		m.removed()
		_, err := m.converge(t)
		require.NoError(t, err, name)
		if name == "being removed" {
			require.NotNil(t, m.org, "kcp is at it")
			require.NotContains(t, m.Did, "delete workspaces/"+uuid+" in orgs")
			m.ws = nil
			m.converged(t)
		}
		require.Nil(t, m.org, name)
		require.Len(t, m.purged, 1, name)
	}
}

// After the hub's cascade, the Org exists until the owner of another finalizer removes
// it. Nothing is created in it.
func TestCascade_doesNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.org.Finalizers, m.ws = []string{"example.com/other"}, nil
	m.removed()
	m.converged(t)
	require.Empty(t, m.Did)
	require.Empty(t, m.purged)
	require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
}

// The hub can stop between the deactivation and the status update, and an undelete can
// follow before the next reconciliation. The status must already say that the Org may be
// inactive, so that the hub activates it.
func TestO13_recordsADeactivationBeforehand(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.converged(t)
	m.deleted()
	result, err := m.pass(t)
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.Equal(t, map[string]bool{"ws3": true}, m.frozen, "that one is deleted itself")
	require.Equal(t, metav1.ConditionFalse, m.active().Status)
	require.False(t, tenancy.DeletionFollowed(m.org.Status.Conditions, true), "nobody is told yet that it is frozen")
	m.converged(t)
	require.Len(t, m.frozen, 4)
	require.True(t, tenancy.DeletionFollowed(m.org.Status.Conditions, true))
}
