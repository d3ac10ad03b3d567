package workspace_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const grace = 720 * time.Hour

// lifecycleKCP is a fake kcp with a Workspace that can be deleted.
type lifecycleKCP struct {
	*kcp
	kcptest.Calls
	held   map[string]v1alpha1.Membership
	bots   map[string]v1alpha1.Bot
	frozen bool
	// closed is true if the Org is soft-deleted. thawed runs after the Workspace was
	// activated, if it is not nil.
	closed bool
	thawed func()
	// withdrawn runs when the Workspace is deleted, if it is not nil.
	withdrawn func()
	// hold is true while nothing is purged.
	hold    bool
	refused error
	purged  []map[string]int
}

// newMortal has a Workspace that is Ready, with two members and a Bot, and a Membership and
// a Bot of another Workspace.
func newMortal(t *testing.T) *lifecycleKCP {
	m := &lifecycleKCP{kcp: newKCP(), held: map[string]v1alpha1.Membership{}, bots: map[string]v1alpha1.Bot{}}
	for name, of := range map[string]string{"ci": uuid, "other": "another"} {
		m.bots[name] = *tenancy.NewBot(name, of, name, v1alpha1.RoleMember, "alice", "")
	}
	for _, in := range []*v1alpha1.Membership{
		tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewMembership("alice", uuid, v1alpha1.RoleAdmin),
		tenancy.NewMembership("bob", uuid, v1alpha1.RoleMember), tenancy.NewMembership("bob", "another", v1alpha1.RoleMember),
	} {
		m.held[in.Name] = *in
	}
	m.more = func(c *workspace.Config) {
		c.Graces, c.Hold = tenancy.Graces{Deletion: grace, Expired: grace / 2}, func() bool { return m.hold }
		c.Clusters = workspace.Clusters{
			Deactivated: func(string) bool { return m.frozen },
			Deactivate: func(_ context.Context, cluster string) error {
				if m.refused != nil {
					return m.refused
				}
				return m.Call("freeze "+cluster, func() { m.frozen = true })
			},
			Activate: func(_ context.Context, cluster string) error {
				return m.Call("thaw "+cluster, func() {
					m.frozen = false
					if m.thawed != nil {
						m.thawed()
					}
				})
			},
			OrgDeactivated: func(orgCluster string) bool {
				require.Equal(t, "org1", orgCluster)
				return m.closed
			},
			ActivateForDeletion: func(_ context.Context, cluster string) error { return m.Call("release "+cluster, func() {}) },
		}
		c.Workspaces.Delete = func(_ context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace) error {
			return m.Call("remove it from "+orgCluster, func() {
				if m.withdrawn != nil {
					m.withdrawn()
				}
				m.ws = kcptest.Removed(m.ws, ws, m.clock.Now())
			})
		}
		c.Memberships.List = func(_ context.Context, orgCluster string) (list []*v1alpha1.Membership, err error) {
			err = m.Call("list "+orgCluster, func() { list = pointers(m.held) })
			return list, err
		}
		c.Memberships.Delete = func(_ context.Context, _ string, held *v1alpha1.Membership) error {
			return m.Call("remove "+held.Name, func() { delete(m.held, held.Name) })
		}
		c.Bots.List = func(_ context.Context, orgCluster string) (list []*v1alpha1.Bot, err error) {
			err = m.Call("list bots of "+orgCluster, func() { list = pointers(m.bots) })
			return list, err
		}
		c.Bots.Delete = func(_ context.Context, _ string, b *v1alpha1.Bot) error {
			return m.Call("remove bot "+b.Name, func() { delete(m.bots, b.Name) })
		}
		c.Ended = func(_ context.Context, orgCluster string, ws *kcptenancyv1alpha1.Workspace, mark string) error {
			require.Equal(t, m.ws.ResourceVersion, ws.ResourceVersion)
			return m.Call("end it in "+orgCluster, func() { m.mark(mark) })
		}
		c.Purged = func(_ context.Context, org, ws string, counts map[string]int) {
			require.Equal(t, "org1/"+uuid, org+"/"+ws)
			m.purged = append(m.purged, counts)
		}
	}
	m.ws.Status.Phase, m.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	m.converged(t)
	require.Empty(t, m.Did)
	return m
}

func pointers[T any](of map[string]T) (all []*T) {
	for _, o := range of {
		all = append(all, &o)
	}
	return all
}

// mark sets or removes the time of the deletion request.
func (m *lifecycleKCP) mark(value string) {
	m.ws = m.ws.DeepCopy()
	m.ws.ResourceVersion += "+"
	if value == "" {
		delete(m.ws.Annotations, v1alpha1.DeletionRequestedAtAnnotation)
		return
	}
	m.ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation] = value
}

func (m *lifecycleKCP) deleted() { m.mark(m.clock.Now().UTC().Format(time.RFC3339)) }

// converge reconciles until nothing changes and returns the requeue delay.
func (m *lifecycleKCP) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	return m.Converge(t, func() (controller.Result, error) { return m.pass(t) }, func() any { return m.ws })
}

// converged calls settle and requires that it succeeds.
func (m *lifecycleKCP) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := m.converge(t)
	require.NoError(t, err)
	return after
}

func (m *lifecycleKCP) condition(name string) metav1.Condition {
	if c := meta.FindStatusCondition(tenancy.WorkspaceOf("o", m.ws).Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (m *lifecycleKCP) phase() v1alpha1.Phase { return tenancy.WorkspaceOf("o", m.ws).Status.Phase }

func TestO13_deactivatesAndKeepsADeletedWorkspace(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	began := m.clock.Now()
	m.deleted()
	for _, c := range []struct{ passed, left time.Duration }{
		{0, grace}, {-10 * time.Minute, grace + 10*time.Minute}, {time.Hour, grace - time.Hour}, {grace - time.Second, time.Second},
	} {
		m.clock.SetTime(began.Add(c.passed))
		after := m.converged(t)
		require.Equal(t, c.left, after, "it is looked at again when it is over")
		require.True(t, m.frozen)
		require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
		require.Equal(t, v1alpha1.ReasonWaiting, m.condition(v1alpha1.ConditionActive).Reason)
		require.Contains(t, m.condition(v1alpha1.ConditionActive).Message, "undeleted")
	}
	require.NotContains(t, m.Did, "remove it from org1")
	require.Len(t, m.held, 4, "who was in it is in it when it is undeleted")
	m.clock.SetTime(began.Add(grace))
	m.hold = true
	require.Equal(t, 15*time.Second, m.converged(t), "purges are held after a restore")
	require.NotNil(t, m.ws)
	m.hold = false
	m.converged(t)
	require.Nil(t, m.ws)
	require.Equal(t, []string{"alice", "another.bob"}, slices.Sorted(maps.Keys(m.held)))
	require.Equal(t, []map[string]int{{"bots": 1, "memberships": 2}}, m.purged)
	require.Contains(t, m.Did, "release ws1", "kcp must be able to clean it up")
}

// A leader leaves this state if it stops while it deactivates the Workspace.
func TestO11_activatesAWorkspaceThatIsNotDeleted(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.frozen, m.closed = true, true
	m.converged(t)
	require.Empty(t, m.Did, "its Org keeps it closed")
	m.closed = false
	m.converged(t)
	require.Equal(t, []string{"thaw ws1"}, m.Did)
}

func TestO13_activatesAnUndeletedWorkspaceOnce(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.converged(t)
	m.Did = nil
	m.mark("")
	m.converged(t)
	require.Equal(t, []string{"thaw ws1"}, m.Did)
	require.False(t, m.frozen)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	m.converged(t)
	require.Equal(t, []string{"thaw ws1"}, m.Did)
}

// The Org is soft-deleted while the Workspace is being activated. The Workspace must be
// deactivated again.
func TestO13_keepsAWorkspaceOfADeletedOrgInactive(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.converged(t)
	m.mark("")
	m.thawed = func() { m.closed = true }
	_, err := m.converge(t)
	require.ErrorIs(t, err, controller.ErrRetry)
	require.True(t, m.frozen)
	require.NotEqual(t, v1alpha1.PhaseReady, m.phase())
	require.False(t, meta.IsStatusConditionTrue(tenancy.WorkspaceOf("o", m.ws).Status.Conditions, v1alpha1.ConditionActive), "the activation of the Org knows that it is deactivated")

	// The Org is undeleted, so the Workspace is activated.
	m.thawed, m.closed = nil, false
	m.converged(t)
	require.False(t, m.frozen)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
}

// A Workspace is not Ready while its activation fails, and the activation is retried.
func TestO13_retriesAFailedActivation(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.converged(t)
	m.mark("")
	m.Fails = m.Made + 1
	_, err := m.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	require.NotEqual(t, v1alpha1.PhaseReady, m.phase())
	require.NotContains(t, m.condition(v1alpha1.ConditionActive).Message, kcptest.ErrDown.Error())
	m.converged(t)
	require.False(t, m.frozen)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
}

func TestO13_neverCarriesOutAWithdrawnDeletion(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.clock.SetTime(m.clock.Now().Add(grace))
	m.withdrawn = func() { m.mark("") }
	_, err := m.converge(t)
	for err != nil {
		_, err = m.converge(t)
	}
	require.NotNil(t, m.ws)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	require.Len(t, m.held, 4)
	require.Empty(t, m.purged)
	m.withdrawn = nil
	m.mark("2000-01-01T00:00:00Z")
	m.clock.SetTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	m.converged(t)
	require.Nil(t, m.ws, "the control: one that stands is")
}

// A hub that was down for the whole grace period can find a Workspace without the
// finalizer. The hub adds the finalizer before the deletion. Without it, the Memberships
// would remain.
func TestO13_removesNothingBeforeTheFinalizerIsInKcp(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.ws.Finalizers = nil
	m.deleted()
	m.clock.SetTime(m.clock.Now().Add(2 * grace))
	m.converged(t)
	require.Nil(t, m.ws)
	require.Len(t, m.held, 2)
	require.Len(t, m.purged, 1)
}

// A deletion time that cannot be parsed counts as a deletion request without an end of
// the grace period. The Workspace stays soft-deleted and is never purged.
func TestO13_neverPurgesWithoutADeletionTime(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"yesterday", "0", "2026-03-01", "null", " "} {
		m := newMortal(t)
		m.ws.CreationTimestamp = metav1.NewTime(m.clock.Now().Add(-2 * grace))
		m.mark(mark)
		after := m.converged(t)
		require.Zero(t, after)
		require.True(t, m.frozen, mark)
		require.True(t, m.ws.DeletionTimestamp.IsZero(), mark)
		require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
		require.Contains(t, m.condition(v1alpha1.ConditionActive).Message, "cannot be read")
		m.mark("")
		m.converged(t)
		require.False(t, m.frozen)
		require.Equal(t, v1alpha1.PhaseReady, m.phase())
	}
}

func TestO13_keepsAWorkspaceThatIsStillInitializing(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseInitializing
	m.deleted()
	m.converged(t)
	require.Empty(t, m.Did)
	require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
	m.ws = m.ws.DeepCopy()
	m.ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
	m.converged(t)
	require.True(t, m.frozen)
}

func TestWorkspace_reportsForbiddenDeactivation(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.refused = errs.New(errs.Forbidden, "it needs another kubeconfig")
	m.deleted()
	after := m.converged(t)
	require.Equal(t, time.Minute, after, "kcp is asked again")
	require.Equal(t, v1alpha1.ReasonDeactivationForbidden, m.condition(v1alpha1.ConditionActive).Reason)
	require.Contains(t, m.condition(v1alpha1.ConditionActive).Message, "it needs another kubeconfig")
	m.refused = kcptest.ErrDown
	_, err := m.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)

	// After kcp's admin has granted the right, the hub recovers without a restart.
	m.refused = nil
	require.Equal(t, grace, m.converged(t))
	require.True(t, m.frozen)
	require.Equal(t, v1alpha1.ReasonWaiting, m.condition(v1alpha1.ConditionActive).Reason)
}

// The hub can stop between the deactivation and the status update, and an undelete can
// follow before the next reconciliation. The status must already say that the Workspace
// may be inactive, so that the hub activates it.
func TestO13_recordsADeactivationBeforehand(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.deleted()
	m.converged(t)
	m.mark("")
	m.converged(t)
	m.deleted()
	result, err := m.pass(t)
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.False(t, m.frozen)
	require.Equal(t, metav1.ConditionFalse, m.condition(v1alpha1.ConditionActive).Status)
	require.False(t, tenancy.DeletionFollowed(tenancy.WorkspaceOf("o", m.ws).Status.Conditions, true), "nobody is told yet that it is frozen")
	m.converged(t)
	require.True(t, m.frozen)
	require.True(t, tenancy.DeletionFollowed(tenancy.WorkspaceOf("o", m.ws).Status.Conditions, true))
}

func TestLifecycle_softDeletesAWorkspaceAtItsEnd(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	end := m.clock.Now().Add(time.Hour)
	m.ws = m.ws.DeepCopy()
	m.ws.Annotations[v1alpha1.ExpiresAtAnnotation] = end.UTC().Format(time.RFC3339)
	after, err := m.converge(t)
	require.NoError(t, err)
	require.Equal(t, time.Hour, after, "it is looked at again at its end")
	require.Empty(t, m.Did)
	m.clock.SetTime(end)
	m.converged(t)
	require.Equal(t, []string{"end it in org1", "freeze ws1"}, slices.Compact(m.Did), "and then everything goes as after a deletion")
	require.Equal(t, m.ws.Annotations[v1alpha1.ExpiresAtAnnotation], m.ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation])
	m.clock.SetTime(end.Add(grace/2 - time.Second))
	m.converged(t)
	require.NotContains(t, m.Did, "remove it from org1")
	m.clock.SetTime(end.Add(grace / 2))
	m.converged(t)
	require.Contains(t, m.Did, "remove it from org1", "with a grace of its own")
}
