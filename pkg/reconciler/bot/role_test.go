package bot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// newAdmin is a world with a Bot that is an admin.
func newAdmin(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	w.bot.Spec.Role = v1alpha1.RoleAdmin
	w.converged(t)
	require.Equal(t, v1alpha1.RoleAdmin, w.bot.Status.AuthorizedRole)
	return w
}

func (w *world) lower() {
	w.change(func(b *v1alpha1.Bot) { b.Spec.Role = v1alpha1.RoleMember })
}

func (w *world) enforced() (bool, string) {
	c := meta.FindStatusCondition(w.bot.Status.Conditions, v1alpha1.ConditionRoleEnforced)
	return c.Status == "True", c.Message
}

func TestRole_lowersOnceKcpHasFollowed(t *testing.T) {
	t.Parallel()
	w := newAdmin(t)
	w.behind = true
	w.lower()
	require.True(t, tenancy.RoleLowered(w.bot), "the write of the lower role refuses the tokens by itself")
	require.Equal(t, 50*time.Millisecond, w.converged(t))
	require.True(t, tenancy.RoleLowered(w.bot))
	require.Len(t, w.bindings, 1)
	enforced, message := w.enforced()
	require.False(t, enforced)
	require.Contains(t, message, "its tokens are refused")
	require.Equal(t, v1alpha1.PhaseProgressing, w.bot.Status.Phase)

	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	require.Equal(t, 15*time.Second, w.converged(t), "kcp is asked less and less often")
	w.behind = false
	w.converged(t)
	require.False(t, tenancy.RoleLowered(w.bot))
	enforced, _ = w.enforced()
	require.True(t, enforced)
	require.Equal(t, v1alpha1.PhaseReady, w.bot.Status.Phase)
}

func TestRole_namesTheBindingsThatGiveMore(t *testing.T) {
	t.Parallel()
	w := newAdmin(t)
	w.excess = []string{"ClusterRoleBinding x", "RoleBinding ci/y"}
	w.lower()
	w.converged(t)
	require.True(t, tenancy.RoleLowered(w.bot), "kcp has followed as to the role, and allows more by these")
	_, message := w.enforced()
	require.Contains(t, message, "ClusterRoleBinding x, RoleBinding ci/y")
	w.excess = nil
	w.converged(t)
	require.False(t, tenancy.RoleLowered(w.bot))
}

func TestRole_staysRefusedWhileKcpDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newAdmin(t)
	w.unanswered = kcptest.ErrDown
	w.lower()
	_, err := w.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	require.True(t, tenancy.RoleLowered(w.bot))
	enforced, _ := w.enforced()
	require.False(t, enforced)
	w.unanswered = nil
	w.converged(t)
	require.False(t, tenancy.RoleLowered(w.bot))
}

func TestRole_locksNobodyOutWhenItIsRaised(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.unanswered = kcptest.ErrDown
	w.change(func(b *v1alpha1.Bot) { b.Spec.Role = v1alpha1.RoleAdmin })
	require.False(t, tenancy.RoleLowered(w.bot))
	w.converged(t)
	require.Equal(t, v1alpha1.RoleAdmin, w.bot.Status.AuthorizedRole)
	require.Equal(t, v1alpha1.PhaseReady, w.bot.Status.Phase)

	// A role that is raised again needs no answer.
	w.lower()
	_, err := w.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	w.change(func(b *v1alpha1.Bot) { b.Spec.Role = v1alpha1.RoleAdmin })
	require.False(t, tenancy.RoleLowered(w.bot))
	w.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, w.bot.Status.Phase)
}

func TestAccount_ofSomebodyIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.account = tenancy.BotAccount(w.bot)
	w.account.UID, w.account.Labels = "of somebody", map[string]string{"app": "mine"}
	require.NotZero(t, w.converged(t))
	require.False(t, tenancy.AccountReady(w.bot))
	require.Empty(t, w.bindings)
	require.Equal(t, map[string]string{"app": "mine"}, w.account.Labels)
	c := meta.FindStatusCondition(w.bot.Status.Conditions, v1alpha1.ConditionAccountReady)
	require.Contains(t, c.Message, "kubectl delete serviceaccount "+name+" --namespace default")
	w.account = nil
	w.converged(t)
	require.True(t, tenancy.AccountReady(w.bot))

	// An account that the hub made and whose UID it could not record is the hub's.
	w = newWorld()
	w.account = tenancy.BotAccount(w.bot)
	w.account.UID = "of the hub"
	w.converged(t)
	require.Equal(t, "of the hub", w.bot.Status.ServiceAccountUID)
}
