package workspace_test

import (
	"context"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// policy is a fake of the admission policy in kcp.
type policy struct {
	inPlace bool
	// lagging is the number of probes until kcp enforces the policy.
	lagging int
	// fails is the error of Put and Enforced, stuck that of RemoveLegacy.
	fails, stuck error
	legacy       map[string]int

	puts, probes, removals int
}

func (p *policy) InPlace(string) bool { return p.inPlace }

func (p *policy) Put(context.Context, string) error {
	p.puts++
	p.inPlace = true
	return p.fails
}

func (p *policy) Enforced(context.Context, string) (bool, error) {
	p.probes++
	p.lagging--
	return p.lagging < 0, p.fails
}

func (p *policy) RemoveLegacy(context.Context, string) (map[string]int, error) {
	p.removals++
	return p.legacy, p.stuck
}

func newReadyKCP() *kcp {
	k := newKCP()
	k.ws.Status.Phase, k.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	k.policy.inPlace = false
	return k
}

func condition(ws tenancy.Workspace, name string) *metav1.Condition {
	return meta.FindStatusCondition(ws.Status.Conditions, name)
}

func TestPolicy_isProbedUntilKcpEnforcesIt(t *testing.T) {
	t.Parallel()
	k := newReadyKCP()
	k.policy.lagging = 2
	k.policy.legacy = map[string]int{"subjects of bindings": 2, "bindings": 1, "APIBindings": 0}
	for range 2 {
		result, err := k.pass(t)
		require.NoError(t, err)
		require.Equal(t, 200*time.Millisecond, result.RequeueAfter)
		ws := tenancy.WorkspaceOf("o", k.ws)
		require.True(t, ws.Ready(), "Ready does not wait for it")
		require.False(t, ws.PolicyEnforced())
		require.Equal(t, metav1.ConditionFalse, condition(ws, v1alpha1.ConditionLegacyRemoved).Status)
	}
	require.Zero(t, k.policy.removals, "what is removed before could be made again")
	for range 3 {
		result, err := k.pass(t)
		require.NoError(t, err)
		require.Zero(t, result.RequeueAfter)
		ws := tenancy.WorkspaceOf("o", k.ws)
		require.True(t, ws.PolicyEnforced())
		require.Equal(t, "removed 1 bindings, 2 subjects of bindings", condition(ws, v1alpha1.ConditionLegacyRemoved).Message)
	}
	require.Equal(t, []int{1, 3, 1}, []int{k.policy.puts, k.policy.probes, k.policy.removals}, "nothing looks again")
}

func TestPolicy_isPutBackAndProbedWhenAltered(t *testing.T) {
	t.Parallel()
	k := newReadyKCP()
	require.True(t, k.reconcile(t).PolicyEnforced())
	k.policy.inPlace, k.policy.lagging = false, 0
	require.True(t, k.reconcile(t).PolicyEnforced())
	require.Equal(t, 2, k.policy.puts)

	// A hub of another version replaced the policy, and kcp enforces the rewritten one
	// with a delay.
	k.policy.inPlace, k.policy.lagging = false, 1
	ws := k.reconcile(t)
	require.True(t, ws.Ready())
	require.False(t, ws.PolicyEnforced())
	require.True(t, k.reconcile(t).PolicyEnforced())
}

func TestPolicy_thatCannotBeWrittenKeepsTheWorkspaceFromReady(t *testing.T) {
	t.Parallel()
	k := newReadyKCP()
	k.policy.fails = kcptest.ErrDown
	_, err := k.pass(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	require.False(t, tenancy.WorkspaceOf("o", k.ws).Ready())
	require.False(t, tenancy.WorkspaceOf("o", k.ws).PolicyEnforced())
}

func TestLegacy_isTriedAgainUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	k := newReadyKCP()
	k.policy.stuck = kcptest.ErrDown
	_, err := k.pass(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	ws := tenancy.WorkspaceOf("o", k.ws)
	require.True(t, ws.PolicyEnforced())
	require.Equal(t, v1alpha1.ReasonFailed, condition(ws, v1alpha1.ConditionLegacyRemoved).Reason)
	k.policy.stuck = nil
	require.Equal(t, metav1.ConditionTrue, condition(k.reconcile(t), v1alpha1.ConditionLegacyRemoved).Status)
}
