package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// policy is a fake of the admission policy in kcp.
type policy struct {
	inPlace bool
	// lagging is the number of probes until kcp enforces the policy.
	lagging int
	// stored says that kcp has the policy although the cache does not.
	stored bool
	// fails is the error of Put and Enforced.
	fails error

	puts, probes int
}

func (p *policy) InPlace(string) bool { return p.inPlace }

func (p *policy) Put(context.Context, string) (bool, error) {
	p.puts++
	p.inPlace = p.fails == nil
	return !p.stored, p.fails
}

func (p *policy) Enforced(context.Context, string) (bool, error) {
	p.probes++
	p.lagging--
	return p.lagging < 0, p.fails
}

func newReadyKCP(t *testing.T) *kcp {
	t.Helper()
	k := newKCP(t)
	k.ws.Status.Phase, k.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	k.policy.inPlace = false
	return k
}

func TestPolicy_isProbedUntilKcpEnforcesIt(t *testing.T) {
	t.Parallel()
	k := newReadyKCP(t)
	k.policy.lagging = 2
	for range 2 {
		result, err := k.pass(t)
		require.NoError(t, err)
		require.Equal(t, 200*time.Millisecond, result.RequeueAfter)
		ws := tenancy.WorkspaceOf("o", k.ws)
		require.True(t, ws.Ready(), "Ready does not wait for it")
		require.False(t, ws.PolicyEnforced())
	}
	for range 3 {
		result, err := k.pass(t)
		require.NoError(t, err)
		require.Zero(t, result.RequeueAfter)
		ws := tenancy.WorkspaceOf("o", k.ws)
		require.True(t, ws.PolicyEnforced())
	}
	require.Equal(t, []int{1, 3}, []int{k.policy.puts, k.policy.probes}, "nothing looks again")
}

func TestPolicy_isPutBackAndProbedWhenAltered(t *testing.T) {
	t.Parallel()
	k := newReadyKCP(t)
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
	k := newReadyKCP(t)
	k.policy.fails = kcptest.ErrDown
	_, err := k.pass(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	require.False(t, tenancy.WorkspaceOf("o", k.ws).Ready())
	require.False(t, tenancy.WorkspaceOf("o", k.ws).PolicyEnforced())
}

// The error of a write counts whatever it is: the condition does not stay True for a policy that
// kcp does not have.
func TestPolicy_thatCannotBeWrittenIsNotEnforced(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"kcp is down": kcptest.ErrDown, "another writer was first": fmt.Errorf("%w: conflict", controller.ErrRetry),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newReadyKCP(t)
			require.True(t, k.reconcile(t).PolicyEnforced(), "the control")
			k.policy.inPlace, k.policy.fails = false, failure
			_, err := k.pass(t)
			require.Equal(t, errors.Is(failure, kcptest.ErrDown), err != nil)
			require.False(t, tenancy.WorkspaceOf("o", k.ws).PolicyEnforced())
			k.policy.fails = nil
			require.True(t, k.reconcile(t).PolicyEnforced())
		})
	}
}

// A role can grow until kcp refuses it. The next version of the policy is written all the same.
func TestPolicy_isWrittenWhereARoleCannotBe(t *testing.T) {
	t.Parallel()
	k := newReadyKCP(t)
	k.FailBefore(func(in kcpfake.Request) error {
		if in.Resource == "clusterroles" {
			return apierrors.NewInternalError(kcptest.ErrDown)
		}
		return nil
	})
	_, err := k.pass(t)
	require.ErrorContains(t, err, kcptest.ErrDown.Error())
	require.Equal(t, 1, k.policy.puts)
	ws := tenancy.WorkspaceOf("o", k.ws)
	require.True(t, ws.PolicyEnforced())
	require.False(t, ws.Ready())
	require.True(t, k.hasNamespace(), "the other parts are written, too")
	k.policy.inPlace, k.policy.lagging = false, 1
	_, err = k.pass(t)
	require.ErrorContains(t, err, kcptest.ErrDown.Error())
	require.False(t, tenancy.WorkspaceOf("o", k.ws).PolicyEnforced(), "the version changed")
}

func TestPolicy_thatKcpHasAlreadyStaysEnforced(t *testing.T) {
	t.Parallel()
	k := newReadyKCP(t)
	require.True(t, k.reconcile(t).PolicyEnforced())
	k.policy.inPlace, k.policy.stored, k.policy.lagging = false, true, 100
	require.True(t, k.reconcile(t).PolicyEnforced(), "the cache is behind")
	require.Equal(t, 2, k.policy.puts)
}

func TestPolicy_isEnforcedOnceDryRunsAgreedForTheWindow(t *testing.T) {
	t.Parallel()
	k := newReadyKCP(t)
	k.more = func(c *workspace.Config) { c.PolicyWindow = 2 * time.Second }
	k.running = k.reconciler()
	look := func() (tenancy.Workspace, time.Duration) {
		result, err := k.pass(t)
		require.NoError(t, err)
		return tenancy.WorkspaceOf("o", k.ws), result.RequeueAfter
	}
	wait := func(steps int) {
		for range steps {
			ws, again := look()
			require.True(t, ws.Ready(), "Ready does not wait for it")
			require.False(t, ws.PolicyEnforced())
			require.Equal(t, 200*time.Millisecond, again)
			k.Clock.SetTime(k.Clock.Now().Add(again))
		}
	}
	wait(5)
	// Another process answers, which does not have the policy yet.
	k.policy.lagging = 1
	wait(1)
	wait(10)
	ws, again := look()
	require.True(t, ws.PolicyEnforced())
	require.Zero(t, again)
	require.Equal(t, 17, k.policy.probes)
	look()
	require.Equal(t, 17, k.policy.probes, "nothing asks again")
}
