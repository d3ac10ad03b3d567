package workspace_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const grace = 720 * time.Hour

// removal is the request that removes the Workspace.
const removal = "delete workspaces/" + uuid + " in org1"

// clusters are logical clusters of which one can be deactivated.
type clusters struct {
	kcptest.Calls
	frozen bool
	// thawed runs after the Workspace was activated, if it is not nil.
	thawed  func()
	refused error
}

func (c *clusters) Deactivated(string) bool { return c.frozen }

func (c *clusters) Deactivate(_ context.Context, cluster string) error {
	if c.refused != nil {
		return c.refused
	}
	return c.Call("freeze "+cluster, func() { c.frozen = true })
}

func (c *clusters) Activate(_ context.Context, cluster string) error {
	return c.Call("thaw "+cluster, func() {
		if c.frozen = false; c.thawed != nil {
			c.thawed()
		}
	})
}

func (c *clusters) ActivateForDeletion(_ context.Context, cluster string) error {
	return c.Call("release "+cluster, func() {})
}

// lifecycleKCP is a kcp with a Workspace that can be deleted.
type lifecycleKCP struct {
	*kcp
	clusters
	// withdrawn runs when the Workspace is deleted, if it is not nil.
	withdrawn func()
	// hold is true while nothing is purged.
	hold   bool
	purged []map[string]int
	// holds is the number of failing patches among those that remove the finalizer.
	holds int
}

// newMortal has a Workspace that is Ready, with two members and a Bot, and a Membership and
// a Bot of another Workspace.
func newMortal(t *testing.T) *lifecycleKCP {
	m := &lifecycleKCP{kcp: newKCP(t)}
	for name, of := range map[string]string{"ci": uuid, "other": "another"} {
		b := tenancy.NewBot(name, of, name, v1alpha1.RoleMember, "alice", "")
		// Its own controller removes the finalizer.
		b.Finalizers = nil
		m.Put("org1", b)
	}
	for _, in := range []*v1alpha1.Membership{
		tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewMembership("alice", uuid, v1alpha1.RoleAdmin),
		tenancy.NewMembership("bob", uuid, v1alpha1.RoleMember), tenancy.NewMembership("bob", "another", v1alpha1.RoleMember),
	} {
		m.Put("org1", in)
	}
	m.more = func(c *workspace.Config) {
		c.Graces, c.Hold = tenancy.Graces{Deletion: grace, Expired: grace / 2}, func() bool { return m.hold }
		c.Clusters = &m.clusters
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
	m.FailBefore(func(in kcpfake.Request) error { return m.request(in, false) })
	m.FailAfter(func(in kcpfake.Request) error { return m.request(in, true) })
	m.converged(t)
	require.Empty(t, m.Did)
	return m
}

// request counts the requests of the lifecycle, before or after they are carried out.
func (m *lifecycleKCP) request(in kcpfake.Request, after bool) error {
	ofWorkspace := in.Resource == "workspaces" && in.Name == uuid
	switch {
	case ofWorkspace && in.Verb == "patch" && !after && m.holds > 0 && !m.ws.DeletionTimestamp.IsZero() && strings.Contains(string(in.Body), `"finalizers"`):
		m.holds--
		return apierrors.NewInternalError(kcptest.ErrDown)
	case ofWorkspace && in.Verb == "delete" && !after && m.withdrawn != nil:
		m.withdrawn()
	}
	counted := ofWorkspace && in.Verb == "delete" || (in.Resource == "memberships" || in.Resource == "bots") && (in.Verb == "list" || in.Verb == "delete")
	if counted && after == m.Late {
		if err := m.Call(in.String(), func() {}); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	return nil
}

// mark sets or removes the time of the deletion request.
func (m *lifecycleKCP) mark(value string) {
	if m.ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation] = value; value == "" {
		delete(m.ws.Annotations, v1alpha1.DeletionRequestedAtAnnotation)
	}
	m.put()
}

func (m *lifecycleKCP) deleted() { m.mark(m.Clock.Now().UTC().Format(time.RFC3339)) }

// close soft-deletes the Org of the Workspace, or undeletes it.
func (m *lifecycleKCP) close(t *testing.T, closed bool) {
	t.Helper()
	o := &v1alpha1.Organization{}
	o.Name = "o"
	kcptest.Change(t, m.KCP, kcptest.Orgs, o, func(o *v1alpha1.Organization) {
		if o.Status.DeletionRequestedAt = nil; closed {
			o.Status.DeletionRequestedAt = &metav1.Time{Time: m.Clock.Now()}
		}
	})
}

// converge reconciles until nothing changes and returns the requeue delay. A pass that meets a conflict is
// repeated.
func (m *lifecycleKCP) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	for range 50 {
		before := m.ws
		result, err := m.pass(t)
		if !errors.Is(err, controller.ErrRetry) && (err != nil || equality.Semantic.DeepEqual(before, m.ws)) {
			return result.RequeueAfter, err
		}
	}
	require.Fail(t, "it never comes to an end", "%v", m.Did)
	return 0, nil
}

// converged calls converge and requires that it succeeds.
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
	began := m.Clock.Now()
	m.deleted()
	for _, c := range []struct{ passed, left time.Duration }{
		{0, grace}, {-10 * time.Minute, grace + 10*time.Minute}, {time.Hour, grace - time.Hour}, {grace - time.Second, time.Second},
	} {
		m.Clock.SetTime(began.Add(c.passed))
		after := m.converged(t)
		require.Equal(t, c.left, after, "it is looked at again when it is over")
		require.True(t, m.frozen)
		require.Equal(t, v1alpha1.PhaseTerminating, m.phase())
		require.Equal(t, v1alpha1.ReasonWaiting, m.condition(v1alpha1.ConditionActive).Reason)
		require.Contains(t, m.condition(v1alpha1.ConditionActive).Message, "undeleted")
	}
	require.NotContains(t, m.Did, removal)
	require.Len(t, m.members(), 4, "who was in it is in it when it is undeleted")
	m.Clock.SetTime(began.Add(grace))
	m.hold = true
	require.Equal(t, 15*time.Second, m.converged(t), "purges are held after a restore")
	require.NotNil(t, m.ws)
	m.hold = false
	m.converged(t)
	require.Nil(t, m.ws)
	require.Equal(t, []string{"alice admin", "another.bob member"}, m.members())
	require.Equal(t, []map[string]int{{"bots": 1, "memberships": 2}}, m.purged)
	require.Contains(t, m.Did, "release ws1", "kcp must be able to clean it up")
}

// A leader leaves this state if it stops while it deactivates the Workspace.
func TestO11_activatesAWorkspaceThatIsNotDeleted(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.frozen = true
	m.close(t, true)
	m.converged(t)
	require.Empty(t, m.Did, "its Org keeps it closed")
	m.close(t, false)
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
	m.thawed = func() { m.close(t, true) }
	_, err := m.pass(t)
	require.ErrorIs(t, err, controller.ErrRetry)
	require.True(t, m.frozen)
	require.NotEqual(t, v1alpha1.PhaseReady, m.phase())
	require.False(t, meta.IsStatusConditionTrue(tenancy.WorkspaceOf("o", m.ws).Status.Conditions, v1alpha1.ConditionActive), "the activation of the Org knows that it is deactivated")

	// The Org is undeleted, so the Workspace is activated.
	m.thawed = nil
	m.close(t, false)
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
	m.Clock.SetTime(m.Clock.Now().Add(grace))
	m.withdrawn = func() { m.mark("") }
	_, err := m.pass(t)
	require.ErrorIs(t, err, controller.ErrRetry)
	m.withdrawn = nil
	m.converged(t)
	require.NotNil(t, m.ws)
	require.Equal(t, v1alpha1.PhaseReady, m.phase())
	require.Len(t, m.members(), 4)
	require.Empty(t, m.purged)
	m.mark("2000-01-01T00:00:00Z")
	m.Clock.SetTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
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
	m.Clock.SetTime(m.Clock.Now().Add(2 * grace))
	m.converged(t)
	require.Nil(t, m.ws)
	require.Len(t, m.members(), 2)
	require.Len(t, m.purged, 1)
}

// A deletion time that cannot be parsed counts as a deletion request without an end of
// the grace period. The Workspace stays soft-deleted and is never purged.
func TestO13_neverPurgesWithoutADeletionTime(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"yesterday", "0", "2026-03-01", "null", " "} {
		m := newMortal(t)
		m.ws.CreationTimestamp = metav1.NewTime(m.Clock.Now().Add(-2 * grace))
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
	end := m.Clock.Now().Add(time.Hour)
	m.ws = m.ws.DeepCopy()
	m.ws.Annotations[v1alpha1.ExpiresAtAnnotation] = end.UTC().Format(time.RFC3339)
	after, err := m.converge(t)
	require.NoError(t, err)
	require.Equal(t, time.Hour, after, "it is looked at again at its end")
	require.Empty(t, m.Did)
	m.Clock.SetTime(end)
	m.converged(t)
	require.Equal(t, []string{"end it in org1", "freeze ws1"}, slices.Compact(m.Did), "and then everything goes as after a deletion")
	require.Equal(t, m.ws.Annotations[v1alpha1.ExpiresAtAnnotation], m.ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation])
	m.Clock.SetTime(end.Add(grace/2 - time.Second))
	m.converged(t)
	require.NotContains(t, m.Did, removal)
	m.Clock.SetTime(end.Add(grace / 2))
	m.converged(t)
	require.Contains(t, m.Did, removal, "with a grace of its own")
}
