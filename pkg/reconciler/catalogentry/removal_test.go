package catalogentry

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestEntry_thatIsDeletedLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converged()
	w.deleted()
	w.converged()
	require.Nil(t, w.entry)
	require.Empty(t, w.roles())
	require.Empty(t, w.bindings())
}

// Whichever call fails, and whether or not kcp carried it out, the entry is gone with its grant
// in the end.
func TestEntry_removalGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for fails := 1; fails <= 3; fails++ {
			w := newWorld(t)
			w.converged()
			w.deleted()
			w.Break(fails, late)
			_, err := w.converge()
			require.ErrorContains(t, err, kcpfake.Broken)
			w.converged()
			require.Nil(t, w.entry)
			require.Empty(t, w.bindings())
		}
	}
}

func TestEntry_removalWaitsForNoWorkspace(t *testing.T) {
	t.Parallel()
	back := func(w *world) { w.PutWorkspace("org1", wsUUID, "ws1") }
	for name, gone := range map[string]func(*world){"soft-deleted": softDelete, "removed": removeWorkspace} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.at(ownPath)
			w.converged()
			gone(w)
			w.deleted()
			w.converged()
			require.Nil(t, w.entry)
			// The workspace takes writes again, and the cache tells that it has a grant.
			require.Equal(t, []string{"oidc:alice"}, w.bound())
			back(w)
			w.converged()
			require.Empty(t, w.bound())
		})
	}
}

// kcp does not serve the workspace of the provider: the entry waits a moment for its grant, and the
// purge of its Organization does not wait for ever.
func TestEntry_removalWaitsForAnInactiveProvider(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		w := newWorld(t)
		w.converged()
		w.deactivate(true)
		w.deleted()
		after := w.converged()
		require.NotNil(t, w.entry)
		require.Positive(t, after)
		require.LessOrEqual(t, after, time.Minute)
		require.Contains(t, w.condition(v1alpha1.ConditionSlugUnique).Message, "deactivated")
		if back {
			w.deactivate(false)
		} else {
			w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
		}
		w.converged()
		require.Nil(t, w.entry)
		require.Equal(t, back, len(w.bindings()) == 0)
	}
}

// The grant of an entry that was deleted while the workspace of the provider was deactivated ends
// with the first entry that finds its export there again.
func TestEntry_removesLeftGrantsOfAProviderThatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converged()
	w.deactivate(true)
	w.converged()
	w.Put("org1", &v1alpha1.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: "living"}})
	left, living, other := &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBinding{}
	left.Name, living.Name = tenancy.CatalogGrantName("org2", "left"), tenancy.CatalogGrantName("org1", "living")
	other.Name = "kedge:workspace:viewer"
	for _, b := range []*rbacv1.ClusterRoleBinding{left, living, other} {
		b.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}
		w.Put(provider, b)
	}
	w.converged()
	require.True(t, w.Read(provider, left), "the workspace is deactivated")
	w.deactivate(false)
	w.converged()
	require.False(t, w.Read(provider, left))
	require.True(t, w.Read(provider, living))
	require.True(t, w.Read(provider, other))
	require.Equal(t, []string{"oidc:alice"}, w.bound())
	w.ForgetRequests()
	w.converged()
	require.Equal(t, w.reads(), w.requests(), "it does not look again while all is well")
}

func TestEntry_ofASoftDeletedOrgHasNoGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converged()
	held := w.entry
	deleted := func(at *metav1.Time) func(*v1alpha1.Organization) {
		return func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = at }
	}
	now := metav1.NewTime(w.Clock.Now())
	w.organization(deleted(&now))
	w.converged()
	require.Empty(t, w.bound())
	require.Equal(t, held, w.entry, "the workspace of the organization takes no writes")
	w.organization(deleted(nil))
	w.converged()
	require.Equal(t, []string{"oidc:alice"}, w.bound())

	own := newWorld(t)
	own.at(ownPath)
	own.converged()
	own.organization(deleted(&now))
	own.ForgetRequests()
	own.converged()
	require.Empty(t, own.requests(), "its Workspaces take no writes either")
}

func TestEntry_tellsWhetherItsServerAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.elect()
	w.converged()
	require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase, "Ready does not wait for it")
	require.Positive(t, w.asked)
	require.Equal(t, metav1.ConditionFalse, w.condition(v1alpha1.ConditionBackendReachable).Status)

	w.probe(errors.New("its CA is not known"))
	w.converged()
	require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase)
	require.Equal(t, unreachable, w.condition(v1alpha1.ConditionBackendReachable).Message)

	held := w.condition(v1alpha1.ConditionBackendReachable)
	w.elect()
	w.converged()
	require.Equal(t, held, w.condition(v1alpha1.ConditionBackendReachable))
	w.probe(nil)
	w.converged()
	require.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionBackendReachable).Status)
	w.elect()
	w.converged()
	require.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionBackendReachable).Status)

	none := newWorld(t)
	none.change(func(e *v1alpha1.CatalogEntry) { e.Spec.Backend = nil })
	none.elect()
	none.converged()
	require.Equal(t, metav1.ConditionTrue, none.condition(v1alpha1.ConditionBackendReachable).Status)
	require.Zero(t, none.asked)
}

func TestEntry_isReconciledOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converged()
	w.ForgetRequests()
	require.Zero(t, w.asked)
	w.change(func(e *v1alpha1.CatalogEntry) {
		e.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationReconcile
	})
	w.converged()
	require.NotContains(t, w.entry.Annotations, v1alpha1.OperationAnnotation)
	grant := grantName(w.entry) + " in " + provider
	require.Subset(t, w.requests(), []string{lookup, "update clusterroles/" + grant, "update clusterrolebindings/" + grant})
	require.Positive(t, w.asked)
}
