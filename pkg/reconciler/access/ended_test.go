package access_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// An admin who removes the hub's binding of themselves takes away what would tell that
// they were one, and keeps what they bound themselves to.
func TestAnAdminWhoRemovedTheirOwnBindingIsUnboundAllTheSame(t *testing.T) {
	t.Parallel()
	const unbind = "unbind kedge:bob"
	bob := tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleAdmin, nil, false)
	// arrange is a Workspace in which bob was admin, of which nothing is left to see.
	arrange := func() (*rights, *access.Reconciler, func() controller.Result) {
		bob.Spec.Role = v1alpha1.RoleMember
		r := newRights(bob)
		r.reconcile(t)
		a := r.reconciler()
		return r, a, func() controller.Result {
			r.did = nil
			result, err := a.Reconcile(t.Context(), key)
			require.NoError(t, err)
			return result
		}
	}

	r, a, pass := arrange()
	a.Ended(key, "bob")
	require.True(t, a.EndedLately(key, "bob"))
	require.False(t, a.EndedLately(key, "carol"))
	require.False(t, a.EndedLately(controller.Key{Cluster: "org", Name: "other"}, "bob"))
	require.Equal(t, access.Settled, pass().RequeueAfter)
	require.Equal(t, []string{unbind}, r.did)
	r.clock.SetTime(r.clock.Now().Add(access.Settled / 2))
	require.Equal(t, access.Settled/2, pass().RequeueAfter, "what was on its way may be bound yet")
	require.Empty(t, r.did)
	r.clock.SetTime(r.clock.Now().Add(access.Settled / 2))
	require.False(t, a.EndedLately(key, "bob"))
	require.Zero(t, pass())
	require.Equal(t, []string{unbind}, r.did)
	require.Zero(t, pass())
	require.Empty(t, r.did, "what others bind them to later is theirs")

	// A pass that fails is made up for.
	a.Ended(key, "bob")
	r.fails = unbind
	_, err := a.Reconcile(t.Context(), key)
	require.Error(t, err)
	r.fails = ""
	require.Equal(t, access.Settled, pass().RequeueAfter)
	require.Equal(t, []string{unbind}, r.did)

	// Who is admin again may bind themselves to what they like.
	r, a, pass = arrange()
	a.Ended(key, "bob")
	bob.Spec.Role = v1alpha1.RoleAdmin
	pass()
	require.NotContains(t, r.did, unbind)
	require.False(t, a.EndedLately(key, "bob"))

	// A replica that has not led when it ended makes up for it where it soon leads, and
	// forgets it where it does not.
	r, a, pass = arrange()
	a.Ended(key, "bob")
	r.clock.SetTime(r.clock.Now().Add(15 * time.Second))
	require.False(t, a.EndedLately(key, "bob"))
	require.Equal(t, access.Settled, pass().RequeueAfter)
	require.Equal(t, []string{unbind}, r.did)
	require.True(t, a.EndedLately(key, "bob"), "until a moment ago another leader may have written")
	r.clock.SetTime(r.clock.Now().Add(access.Settled))
	require.Zero(t, pass())
	require.Equal(t, []string{unbind}, r.did)
	a.Ended(key, "bob")
	r.clock.SetTime(r.clock.Now().Add(time.Hour))
	require.Zero(t, pass())
	require.Empty(t, r.did)
}

// A pass that has read an admin's Membership before they are demoted neither takes the
// end for one that was undone, nor writes behind the look for what they are bound to.
func TestARightThatEndsWhileAPassWritesIsSweptByTheNext(t *testing.T) {
	t.Parallel()
	const binding, unbind = "kedge:workspace:admin:user:bob", "unbind kedge:bob"
	bob := tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleAdmin, nil, false)
	r := newRights(bob)
	a := r.reconciler()
	r.meanwhile = func() {
		r.meanwhile = nil
		r.memberships = []*v1alpha1.Membership{tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, false)}
		a.Ended(key, "bob")
		r.clock.SetTime(r.clock.Now().Add(2 * access.Settled))
	}
	_, err := a.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Nil(t, r.meanwhile)
	require.Contains(t, r.bindings, binding, "what the pass was about to write")
	// He removes what would tell of it.
	delete(r.bindings, binding)
	for range 2 {
		r.did = nil
		_, err = a.Reconcile(t.Context(), key)
		require.NoError(t, err)
		require.Contains(t, r.did, unbind)
		r.clock.SetTime(r.clock.Now().Add(access.Settled))
	}
	r.did = nil
	_, err = a.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.did)
}

// What the hub does not see may be anything.
func TestAWorkspaceThatTheHubDoesNotSeeIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	r := newRights(tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleAdmin, nil, false))
	r.reconcile(t)
	a := r.reconciler()
	require.Zero(t, a.MissingOf(key, "bob"))
	r.hidden = true
	require.Equal(t, 1, a.Missing(key))
	require.Equal(t, 1, a.MissingOf(key, "bob"))
}

// kcp's copy of a binding keeps its finalizers, and what it binds, where the binding is
// gone before the copy is empty.
func TestABindingThatATenantHoldsIsEmptyForAWhileBeforeItGoes(t *testing.T) {
	t.Parallel()
	const name = "kedge:workspace:member:user:bob"
	r := newRights(tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, false))
	r.reconcile(t)
	r.bindings[name].UID, r.bindings[name].Finalizers = "held", []string{"example.com/held"}
	r.memberships, r.did = nil, nil
	a := r.reconciler()
	for range 2 {
		_, err := a.Reconcile(t.Context(), key)
		require.ErrorIs(t, err, controller.ErrRetry)
		require.Empty(t, r.bindings[name].Subjects)
		require.Equal(t, []string{"empty " + name}, r.did)
	}
	r.clock.SetTime(r.clock.Now().Add(access.Settled))
	_, err := a.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.names())
}

// Its finalizers hold it no longer when it is written, and then it is made anew.
func TestABindingOfTheHubsThatATenantHoldsInItsDeletionIsMadeAnew(t *testing.T) {
	t.Parallel()
	const name = "kedge:workspace:member:user:bob"
	r := newRights(tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, false))
	r.reconcile(t)
	r.bindings[name].DeletionTimestamp, r.bindings[name].Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/held"}
	require.Equal(t, 1, r.reconciler().MissingOf(key, "bob"))
	_, err := r.reconciler().Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []string{"write " + name}, r.did)
	require.Empty(t, r.bindings[name].Finalizers)
}
