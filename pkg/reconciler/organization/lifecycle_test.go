package organization_test

import (
	"context"
	"slices"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO13_deactivatesAndKeepsADeletedOrg(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	began := m.clock.Now()
	m.deleted()
	for _, c := range []struct{ passed, left time.Duration }{
		{0, grace}, {-10 * time.Minute, grace + 10*time.Minute}, {time.Hour, grace - time.Hour}, {grace - time.Nanosecond, time.Nanosecond},
	} {
		m.clock.SetTime(began.Add(c.passed))
		m.Did = nil
		after := m.converged(t)
		require.Equal(t, c.left, after, "it is looked at again when it is over")
		require.Equal(t, []string{"freeze ws1", "freeze ws2", "freeze ws3", "freeze org1"}, m.Did[:4], "what is in it first: their state is written there")
		require.NotContains(t, m.Did, "remove it")
		require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
		require.Equal(t, v1alpha1.ReasonWaiting, m.active().Reason)
		require.Contains(t, m.active().Message, "undeleted")
	}
	m.clock.SetTime(began.Add(grace))
	m.Did, m.hold = nil, true
	require.Equal(t, 15*time.Second, m.converged(t), "purges are held after a restore")
	require.NotNil(t, m.org)
	require.Equal(t, v1alpha1.ReasonWaiting, m.active().Reason)
	m.Did, m.hold = nil, false
	m.converged(t)
	require.Nil(t, m.org)
	require.Nil(t, m.ws)
	require.Empty(t, m.children)
	require.Empty(t, m.held)
	require.Equal(t, []map[string]int{{"workspaces": 3, "memberships": 3}}, m.purged)
	index := func(what string) int {
		i := slices.Index(m.Did, what)
		require.GreaterOrEqual(t, i, 0, "%s: %v", what, m.Did)
		return i
	}
	require.Less(t, index("thaw org1"), index("remove workspace w1 from org1"))
	require.Less(t, index("remove workspace w3 from org1"), index("remove alice"), "children before parents")
	require.Less(t, index("remove w1.bob"), index("remove workspace "+uuid+" from orgs"))
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
			ws, now := m.children["w2"], metav1.NewTime(m.clock.Now())
			ws.DeletionRequestedAt = &now
			m.children["w2"], m.frozen["ws2"] = ws, true
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
	m.children = map[string]tenancy.Workspace{
		"w1": {UUID: "w1", ClusterID: "ws1"}, "w2": {UUID: "w2", ClusterID: "ws2", KCPReady: true, Terminating: true}, "w3": {UUID: "w3"},
	}
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
	m.clock.SetTime(m.clock.Now().Add(grace))
	m.converged(t)
	require.Contains(t, m.Did, "remove it")
}

func TestO13_neverCarriesOutAWithdrawnDeletion(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.clock.SetTime(m.clock.Now().Add(grace))
	m.withdrawn = func() { m.mark(nil) }
	m.converged(t)
	require.NotNil(t, m.org)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	require.Len(t, m.held, 3)
	require.Len(t, m.children, 3)
	m.withdrawn = nil
	long := m.clock.Now().Add(-2 * grace)
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
	m.org = m.org.DeepCopy()
	m.org.Finalizers = nil
	m.deleted()
	m.clock.SetTime(m.clock.Now().Add(2 * grace))
	m.converged(t)
	require.Nil(t, m.org)
	require.Empty(t, m.children)
	require.Empty(t, m.held)
	require.Nil(t, m.ws)
}

// Whichever call fails, and whether or not kcp carried it out, the cascade ends in the
// same state. The counts in the audit event include all objects.
func TestO13_cascadeGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		failed := 0
		for n := 1; ; n++ {
			m := newMortal(t)
			m.deleted()
			m.clock.SetTime(m.clock.Now().Add(grace))
			m.Made, m.Fails, m.Late = 0, n, late
			stopped := 0
			for m.org != nil {
				if _, err := m.converge(t); err != nil {
					require.ErrorIs(t, err, kcptest.ErrDown)
					stopped++
				}
				require.LessOrEqual(t, stopped, 1)
			}
			require.Empty(t, m.children, "call %d, late %v", n, late)
			require.Empty(t, m.held)
			require.Nil(t, m.ws)
			require.Equal(t, []map[string]int{{"workspaces": 3, "memberships": 3}}, m.purged)
			if stopped == 0 {
				break
			}
			failed++
		}
		require.Greater(t, failed, 15, "the control: every call has failed once")
	}
}

// The cascade waits for Workspaces that are terminating, and does not delete them again.
func TestO13_parentsWaitForTheirChildren(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.org = m.org.DeepCopy()
	now := metav1.NewTime(m.clock.Now())
	m.org.DeletionTimestamp = &now
	configure := m.more
	leaving := true
	m.more = func(c *organization.Config) {
		configure(c)
		c.Workspaces.List = func(context.Context, string) ([]*kcptenancyv1alpha1.Workspace, error) {
			if !leaving {
				return nil, nil
			}
			o := &kcptenancyv1alpha1.Workspace{}
			o.Name, o.DeletionTimestamp = "w1", &now
			return []*kcptenancyv1alpha1.Workspace{o}, nil
		}
	}
	m.converged(t)
	require.NotContains(t, m.Did, "remove workspace w1 from org1")
	require.Len(t, m.held, 3)
	require.NotNil(t, m.ws)
	require.Contains(t, m.active().Message, "1 workspaces are being removed")
	leaving = false
	m.converged(t)
	require.Nil(t, m.org)
}

// The cascade waits for CatalogEntries, whose controller removes what they left in the
// workspaces of providers.
func TestO13_theWorkspaceWaitsForCatalogEntries(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.org = m.org.DeepCopy()
	now := metav1.NewTime(m.clock.Now())
	m.org.DeletionTimestamp = &now
	m.children, m.entries = nil, 2
	m.converged(t)
	require.NotNil(t, m.ws)
	require.Contains(t, m.active().Message, "2 catalog entries are being removed")
	m.entries = 0
	m.converged(t)
	require.Nil(t, m.org)
}

// The cascade ends for an Org without a workspace: kcp never scheduled it or has deleted
// it.
func TestO13_removesAnOrgWithoutAWorkspace(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(*lifecycleKCP){
		"never placed": func(m *lifecycleKCP) { m.ws = m.ws.DeepCopy(); m.ws.Spec.Cluster = "" },
		"never made":   func(m *lifecycleKCP) { m.ws = nil },
		"being removed": func(m *lifecycleKCP) {
			m.ws = m.ws.DeepCopy()
			m.ws.DeletionTimestamp = &metav1.Time{Time: m.clock.Now()}
		},
	} {
		m := newMortal(t)
		arrange(m)
		m.children, m.held = map[string]tenancy.Workspace{}, map[string]v1alpha1.Membership{}
		m.org = m.org.DeepCopy()
		now := metav1.NewTime(m.clock.Now())
		m.org.DeletionTimestamp = &now
		_, err := m.converge(t)
		require.NoError(t, err, name)
		if name == "being removed" {
			require.NotNil(t, m.org, "kcp is at it")
			require.NotContains(t, m.Did, "remove workspace "+uuid+" from orgs")
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
	m.org = m.org.DeepCopy()
	now := metav1.NewTime(m.clock.Now())
	m.org.DeletionTimestamp, m.org.Finalizers = &now, []string{"example.com/other"}
	m.ws = nil
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
