package organization_test

import (
	"errors"
	"testing"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// O-11: an Org becomes Ready only when everything in it exists, and the order is fixed.
func TestO11_anOrgBecomesReadyStepByStep(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	require.Equal(t, "root:kedge:orgs:"+uuid, k.org.Status.WorkspacePath)

	k.waiting = true
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase(), "kcp has not said Ready")
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())

	k.finish()
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseReady, k.phase())
	require.True(t, meta.IsStatusConditionTrue(k.org.Status.Conditions, v1alpha1.ConditionReady))
	require.Equal(t, []string{creation, adminAdded, "initialize org1"}, k.Did)
	require.Equal(t, kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeOrganization, Path: "root:kedge"}, *k.ws.Spec.Type)
	k.Did = nil
	require.NoError(t, k.reconcile(t))
	require.Empty(t, k.Did, "a Ready Org is left alone")
}

// A store that is full takes no Workspace and no member more, and removals go on.
func TestReconcile_removesBesideWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	k.finish()
	require.NoError(t, k.reconcile(t))
	carol := tenancy.NewMembership("carol", "", v1alpha1.RoleMember)
	k.Put("org1", carol)
	held, ok := k.Caches.Memberships.Get("org1", carol.Name)
	require.True(t, ok)
	k.org = k.org.DeepCopy()
	k.org.Spec.WorkspaceClaims = []v1alpha1.Claim{tenancy.NewClaim("new", "Display name", "alice", "hash", metav1.Unix(1, 0))}
	k.org.Spec.MembershipChanges = []v1alpha1.MembershipChange{
		{User: "dave", Role: v1alpha1.RoleMember, By: "alice"}, {User: "carol", UID: held.UID, Generation: held.Generation, By: "alice"},
	}
	k.FailBefore(func(in kcpfake.Request) error {
		if in.Verb == "create" {
			return apierrors.NewInternalError(kcptest.ErrDown)
		}
		return nil
	})
	require.ErrorContains(t, k.reconcile(t), v1alpha1.ConditionClaimsHandled)
	_, stays := k.Caches.Memberships.Get("org1", carol.Name)
	require.False(t, stays, "carol is removed")
	require.Len(t, k.org.Spec.WorkspaceClaims, 1, "what was asked for is kept")
	require.Len(t, k.org.Spec.MembershipChanges, 1)
}

func TestReconcile_readdsAFormerAdminToAnEmptyOrgOnly(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	k.finish()
	require.NoError(t, k.reconcile(t))
	k.join(tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin))
	k.Did = nil
	require.NoError(t, k.reconcile(t))
	require.Empty(t, k.Did)
	for _, left := range [][]*v1alpha1.Membership{nil, {tenancy.NewMembership("bob", "w", v1alpha1.RoleAdmin)}} {
		k.join(left...)
		k.Did = nil
		require.NoError(t, k.reconcile(t))
		require.Equal(t, []string{adminAdded}, k.Did)
	}
}

// A leader with an outdated cache sees an Org as new or without its members.
func TestReconcile_doesNotReaddTheFounderFromAStaleCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready bool // in the cache
		held  []*v1alpha1.Membership
		done  bool // in kcp
		made  bool
	}{
		"somebody is in it":                   {ready: true, held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}, done: true},
		"nobody is in it":                     {ready: true, done: true, made: true},
		"somebody is in a Workspace of it":    {ready: true, held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "w", v1alpha1.RoleAdmin)}, done: true, made: true},
		"it is not new":                       {held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}, done: true},
		"it is new, and somebody is in it":    {held: []*v1alpha1.Membership{tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)}, made: true},
		"it is new, and the founder is in it": {held: []*v1alpha1.Membership{tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)}, made: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP(t)
			k.waiting, k.blind = true, true
			k.join(c.held...)
			known := k.org.DeepCopy()
			if c.done {
				meta.SetStatusCondition(&k.org.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionFirstAdmin, Status: metav1.ConditionTrue, Reason: "Done"})
				k.put()
			}
			if c.ready {
				known = k.org.DeepCopy()
			}
			k.stale = known
			if err := k.reconcile(t); err != nil {
				require.ErrorIs(t, err, controller.ErrRetry)
			}
			if c.made {
				require.Contains(t, k.Did, adminAdded)
			} else {
				require.NotContains(t, k.Did, adminAdded)
			}
		})
	}
}

func TestReconcile_addsNobodyWhileKCPDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	k.finish()
	k.join()
	k.Did, k.failure = nil, errors.New("kcp does not answer")
	require.Error(t, k.reconcile(t))
	require.Empty(t, k.Did)
	k.failure = nil
	require.NoError(t, k.reconcile(t))
	require.Equal(t, []string{adminAdded}, k.Did[:1], "the control: of an Org without people kcp is believed")
}

// The cascade has ended, so nothing would delete the new workspace.
func TestReconcile_createsNothingForAPurgedOrg(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(k *kcp){
		"gone":       func(k *kcp) { k.Remove(kcptest.Orgs, k.org); k.org = nil },
		"another":    func(k *kcp) { k.org.UID = "another" },
		"on its way": func(k *kcp) { k.org.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP(t)
			k.stale = k.org.DeepCopy()
			change(k)
			require.ErrorIs(t, k.reconcile(t), controller.ErrRetry)
			require.Empty(t, k.Did)
			k.org, k.stale = k.stale, nil
			require.NoError(t, k.reconcile(t))
			require.Equal(t, []string{creation}, k.Did, "the control")
		})
	}
}

// kcp cannot restore a workspace that was deleted by hand, so the conditions report it.
func TestO11_anOrgIsNotReadyWhileItsWorkspaceTerminates(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.waiting = true
	require.NoError(t, k.reconcile(t))
	now := metav1.Now()
	k.ws.Status.Phase, k.ws.Spec.Cluster, k.ws.DeletionTimestamp = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1", &now
	k.Did = nil
	require.NoError(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	require.Contains(t, meta.FindStatusCondition(k.org.Status.Conditions, v1alpha1.ConditionReady).Message, "lost")
	require.Empty(t, k.Did)
}

func TestReconcile_showsAFailureWithoutInternals(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.failure = errors.New("dial tcp 10.0.0.1: refused")
	require.Error(t, k.reconcile(t))
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	c := meta.FindStatusCondition(k.org.Status.Conditions, v1alpha1.ConditionWorkspaceBound)
	require.NotNil(t, c)
	require.NotContains(t, c.Message, "10.0.0.1")
	k.failure = nil
	require.NoError(t, k.reconcile(t))
}

// The named creator becomes admin only if the User is old enough to be the creator: the name of
// a deleted User can belong to another one.
func TestFirstAdmin_isTheCreatorOfTheOrg(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by       string
		made     time.Duration
		personal bool
		role     v1alpha1.Role
		want     []string
	}{
		"a person":                      {by: "alice", want: []string{"alice admin"}},
		"nobody":                        {want: nil},
		"one who is gone":               {by: "bob", want: nil},
		"one who came later":            {by: "alice", made: time.Hour, want: nil},
		"one who came before":           {by: "alice", made: -time.Hour, want: []string{"alice admin"}},
		"in their own":                  {by: "alice", personal: true, role: v1alpha1.RoleAdmin, want: []string{"alice admin"}},
		"in their own, as a member":     {by: "alice", personal: true, role: v1alpha1.RoleMember, want: []string{"alice member"}},
		"in a shared one, always admin": {by: "alice", role: v1alpha1.RoleMember, want: []string{"alice admin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP(t)
			k.waiting = true
			k.org.Spec.Personal = c.personal
			k.org.Annotations[v1alpha1.CreatedByAnnotation] = c.by
			k.org.CreationTimestamp = metav1.NewTime(k.Clock.Now())
			u, _ := k.ByName("alice")
			u.CreationTimestamp = metav1.NewTime(k.Clock.Now().Add(c.made))
			k.Put(kcptest.Users, u)
			if c.role != "" {
				k.role = c.role
			}
			require.NoError(t, k.reconcile(t))
			require.NoError(t, k.reconcile(t))
			var got []string
			for _, m := range k.Caches.Memberships.InCluster("org1") {
				require.Equal(t, v1alpha1.ScopeOrg, m.Spec.Scope)
				got = append(got, m.Spec.UserRef.Name+" "+string(m.Spec.Role))
			}
			require.Equal(t, c.want, got)
		})
	}
}

// With a spare, one pass makes the Organization Ready: nothing waits for kcp.
func TestReconcile_takesASpareOfTheCreator(t *testing.T) {
	t.Parallel()
	for reservation, rightful := range map[string]bool{"": true, `{"user":"alice"}`: true, `{"user":"bob"}`: false, "{": false} {
		k := newKCP(t)
		k.ws = &kcptenancyv1alpha1.Workspace{}
		k.ws.Name, k.ws.Labels = uuid, map[string]string{v1alpha1.SpareLabel: "hash"}
		k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
		if reservation != "" {
			k.ws.Annotations = map[string]string{v1alpha1.SpareReservedAnnotation: reservation}
		}
		err := k.reconcile(t)
		if !rightful {
			require.ErrorIs(t, err, controller.ErrRetry, reservation)
			require.Equal(t, []string{"delete workspaces/" + uuid + " in orgs"}, k.Did)
			require.NoError(t, k.reconcile(t))
			require.Equal(t, []string{creation}, k.Did[1:])
			continue
		}
		require.NoError(t, err, reservation)
		require.Equal(t, []string{"patch workspaces/" + uuid + " in orgs", adminAdded}, k.Did)
		require.False(t, tenancy.IsSpare(k.ws))
		require.Equal(t, v1alpha1.PhaseReady, k.phase())
	}
}

// A process that is killed at the write with which it takes a spare, or throws one away that is another's, leaves what the
// next one finishes.
func TestReconcile_takesASpareAfterAKill(t *testing.T) {
	t.Parallel()
	for reservation, want := range map[string][]string{
		`{"user":"alice"}`: {"patch workspaces/" + uuid + " in orgs", adminAdded},
		`{"user":"bob"}`:   {"delete workspaces/" + uuid + " in orgs", creation},
	} {
		for _, late := range []bool{false, true} {
			k := newKCP(t)
			k.ws = &kcptenancyv1alpha1.Workspace{}
			k.ws.Name, k.ws.Labels = uuid, map[string]string{v1alpha1.SpareLabel: "hash"}
			k.ws.Annotations = map[string]string{v1alpha1.SpareReservedAnnotation: reservation}
			k.ws.Status.Phase, k.ws.Spec.Cluster = kcpcorev1alpha1.LogicalClusterPhaseReady, "org1"
			k.Fails, k.Late = 1, late
			require.Error(t, k.reconcile(t))
			k.Fails = 0
			for range 2 {
				if err := k.reconcile(t); err != nil {
					require.ErrorIs(t, err, controller.ErrRetry)
				}
			}
			if late {
				want = want[1:]
			}
			require.Equal(t, want, k.Did, "%s, after the write: %t", reservation, late)
			require.False(t, tenancy.IsSpare(k.ws))
		}
	}
}

// A leader can throw a spare away at the moment at which somebody claims it, as after a suspension of the hub between the
// two. The Organization gets another workspace, and nobody reads of content that is lost.
func TestReconcile_makesAWorkspaceAfterItsSpareWasThrownAway(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	now := metav1.NewTime(k.Clock.Now())
	k.ws = &kcptenancyv1alpha1.Workspace{}
	k.ws.Name, k.ws.Labels = uuid, map[string]string{v1alpha1.SpareLabel: "hash"}
	k.ws.Annotations = map[string]string{v1alpha1.SpareReservedAnnotation: `{"user":"alice"}`}
	k.ws.DeletionTimestamp, k.ws.Finalizers = &now, []string{"core.kcp.io/logicalcluster"}
	require.NoError(t, k.reconcile(t))
	require.Empty(t, k.Did)
	require.Equal(t, v1alpha1.PhaseProgressing, k.phase())
	bound := meta.FindStatusCondition(k.org.Status.Conditions, v1alpha1.ConditionWorkspaceBound)
	require.Contains(t, bound.Message, "another one is created")
	require.NotContains(t, bound.Message, "lost")
	k.ws = nil
	require.NoError(t, k.reconcile(t))
	require.Equal(t, []string{creation}, k.Did)
	require.False(t, tenancy.IsSpare(k.ws))
}
