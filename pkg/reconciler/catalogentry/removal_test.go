package catalogentry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/catalogentry"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestEntry_thatIsDeletedLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.deleted()
	w.converged(t)
	require.Nil(t, w.entry)
	require.Empty(t, w.roles)
	require.Empty(t, w.bindings)
}

// Whichever call fails, and whether or not kcp carried it out, the entry is gone with its grant
// in the end.
func TestEntry_removalGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for fails := 1; fails <= 2; fails++ {
			w := newWorld()
			w.converged(t)
			w.deleted()
			w.Made, w.Fails, w.Late = 0, fails, late
			_, err := w.converge(t)
			require.ErrorIs(t, err, kcptest.ErrDown)
			w.converged(t)
			require.Nil(t, w.entry)
			require.Empty(t, w.bindings)
		}
	}
}

func TestEntry_removalWaitsForNoWorkspace(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*world){
		"soft-deleted": softDelete,
		"removed":      func(w *world) { w.known = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.entry.Spec.APIExport.Path = ownPath
			w.converged(t)
			gone(w)
			w.deleted()
			w.converged(t)
			require.Nil(t, w.entry)
			// The workspace takes writes again, and the cache tells that it has a grant.
			require.Equal(t, []string{"alice"}, w.bound())
			w.granted = []string{"ws1"}
			w.converged(t)
			require.Empty(t, w.bound())
		})
	}
}

// kcp does not serve the workspace of the provider: the entry waits a moment for its grant, and the
// purge of its Organization does not wait for ever.
func TestEntry_removalWaitsForAnInactiveProvider(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		w := newWorld()
		w.converged(t)
		w.refused = apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "", nil)
		w.deleted()
		after := w.converged(t)
		require.NotNil(t, w.entry)
		require.Positive(t, after)
		require.LessOrEqual(t, after, time.Minute)
		require.Contains(t, w.condition(v1alpha1.ConditionSlugUnique).Message, "deactivated")
		if back {
			w.refused = nil
		} else {
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
		}
		w.converged(t)
		require.Nil(t, w.entry)
		require.Equal(t, back, len(w.bindings) == 0)
	}
}

// The grant of an entry that was deleted while the workspace of the provider was deactivated ends
// with the first entry that finds its export there again.
func TestEntry_removesLeftGrantsOfAProviderThatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.absence = catalogentry.WorkspaceInactive
	w.converged(t)
	left := provider + "|" + tenancy.CatalogGrantName("org2", "left")
	other := provider + "|kedge:workspace:viewer"
	for _, key := range []string{left, other} {
		w.bindings[key] = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimPrefix(key, provider+"|")}}
	}
	w.converged(t)
	require.Contains(t, w.bindings, left, "the workspace is deactivated")
	w.absence = ""
	w.converged(t)
	require.NotContains(t, w.bindings, left)
	require.Contains(t, w.bindings, other)
	require.Equal(t, []string{"alice"}, w.bound())
	w.Did = nil
	w.converged(t)
	require.Equal(t, []string{"find export"}, w.Did, "it does not look again while all is well")
}

func TestEntry_ofASoftDeletedOrgHasNoGrant(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	held := w.entry
	w.inGrace = true
	w.converged(t)
	require.Empty(t, w.bound())
	require.Equal(t, held, w.entry, "the workspace of the organization takes no writes")
	w.inGrace = false
	w.converged(t)
	require.Equal(t, []string{"alice"}, w.bound())

	own := newWorld()
	own.entry.Spec.APIExport.Path = ownPath
	own.converged(t)
	own.Did, own.inGrace = nil, true
	own.converged(t)
	require.Empty(t, own.Did, "its Workspaces take no writes either")
}

func TestEntry_tellsWhetherItsServerAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.probed = false
	w.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase, "Ready does not wait for it")
	require.Contains(t, w.Did, "probe")
	require.Equal(t, metav1.ConditionFalse, w.condition(v1alpha1.ConditionBackendReachable).Status)

	w.probed, w.problem = true, "the server of the provider is not reachable: its CA is not known"
	w.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase)
	require.Equal(t, w.problem, w.condition(v1alpha1.ConditionBackendReachable).Message)

	// A new leader has probed nothing yet.
	held := w.condition(v1alpha1.ConditionBackendReachable)
	w.probed = false
	w.converged(t)
	require.Equal(t, held, w.condition(v1alpha1.ConditionBackendReachable))
	w.probed, w.problem = true, ""
	w.converged(t)
	require.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionBackendReachable).Status)
	w.probed = false
	w.converged(t)
	require.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionBackendReachable).Status)

	none := newWorld()
	none.entry.Spec.Backend, none.probed = nil, false
	none.converged(t)
	require.Equal(t, metav1.ConditionTrue, none.condition(v1alpha1.ConditionBackendReachable).Status)
	require.NotContains(t, none.Did, "probe")
}

func TestEntry_isReconciledOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.Did = nil
	w.change(func(e *v1alpha1.CatalogEntry) {
		e.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationReconcile
	})
	w.converged(t)
	require.NotContains(t, w.entry.Annotations, v1alpha1.OperationAnnotation)
	require.Subset(t, w.Did, []string{"find export", "role at " + provider, "bind at " + provider, "probe"})
}
