package user_test

import (
	"fmt"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// placed makes alice's Org and its Workspace Ready.
func (k *kcp) placed(t *testing.T) {
	t.Helper()
	k.place(t, own)
}

// place makes an Org and its Workspace Ready.
func (k *kcp) place(t *testing.T, uuid string) {
	t.Helper()
	k.edit(t, uuid, func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseReady })
	k.PutWorkspace(kcptest.Orgs, uuid, "ownorg")
	for _, ws := range k.Caches.Workspaces.InCluster("ownorg") {
		ws.Spec.Cluster, ws.Status.Phase = "ownws", kcpcorev1alpha1.LogicalClusterPhaseReady
		ws.Annotations[v1alpha1.StatusAnnotation] = `{"phase":"Ready"}`
		k.Put("ownorg", ws)
	}
}

func (k *kcp) condition(name string) metav1.Condition {
	if c := meta.FindStatusCondition(k.user.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// O-11: a new User becomes Ready when all objects of the sign-up exist.
func TestO11_aNewPersonGetsAnOrgAndAWorkspace(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.converged(t)
	require.Equal(t, []string{v1alpha1.CascadeFinalizer}, k.user.Finalizers, "nothing is made that could be left behind")
	require.Equal(t, []string{"create org " + own}, k.Did)
	require.Equal(t, own, k.user.Status.PersonalOrg)
	require.True(t, k.org(own).Spec.Personal)
	require.Equal(t, "alice", k.org(own).CreatedBy())
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

	k.placed(t)
	k.converged(t)
	ws := tenancy.NewDefaultWorkspace(k.org(own)).UUID
	require.Equal(t, []string{"create org " + own, "create workspace " + ws + " in ownorg"}, k.Did)
	require.Empty(t, k.user.Status.DefaultWorkspace, "kcp is still at it")

	k.placed(t)
	k.converged(t)
	require.Equal(t, ws, k.user.Status.DefaultWorkspace)
	require.Equal(t, "ownws", k.user.Spec.DefaultCluster)
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)

	// Each altered field is repaired.
	for _, alter := range []func(u *v1alpha1.User){
		func(u *v1alpha1.User) { u.Status.PersonalOrg = "elsewhere" },
		func(u *v1alpha1.User) { u.Status.DefaultWorkspace = "elsewhere" },
		func(u *v1alpha1.User) { u.Spec.DefaultCluster = "elsewhere" },
		func(u *v1alpha1.User) { u.Spec.DefaultCluster = "" },
		func(u *v1alpha1.User) { u.Status, u.Spec.DefaultCluster = v1alpha1.UserStatus{}, "" },
	} {
		alter(k.user)
		k.converged(t)
		require.Equal(t, []string{own, ws, "ownws"}, []string{k.user.Status.PersonalOrg, k.user.Status.DefaultWorkspace, k.user.Spec.DefaultCluster})
		require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
		require.Len(t, k.Did, 2, "nothing is made anew")
	}

	// Sign-up happens once: objects that the person deleted are not created again.
	gone := &kcptenancyv1alpha1.Workspace{}
	gone.Name = ws
	k.Remove("ownorg", gone)
	k.discard(own)
	k.Did = nil
	k.converged(t)
	require.Empty(t, k.Did)
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
}

func TestO11_signUpGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for fails := 1; fails <= 2; fails++ {
			k := newKCP(t)
			k.Fails, k.Late = fails, late
			failed := false
			for range 4 {
				_, err := k.converge(t)
				if err != nil {
					require.Error(t, err)
					require.NotContains(t, fmt.Sprint(k.user.Status.Conditions), kcptest.ErrDown.Error())
					require.NotEqual(t, v1alpha1.PhaseReady, k.user.Status.Phase)
					failed = true
				}
				if k.has(own) {
					k.placed(t)
				}
			}
			require.True(t, failed, "call %d", fails)
			require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase, "call %d, late %v", fails, late)
			require.Len(t, k.Caches.Organizations.InCluster(kcptest.Orgs), 1)
			require.Len(t, k.workspaces(), 1)
		}
	}
}

// A leader that was paused has an outdated cache. The User in it looks new, although the
// objects were created, and possibly deleted, since.
func TestSignUp_createsNothingTwiceFromAStaleCache(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(k *kcp){
		"it was made":   func(k *kcp) { k.user.Status.PersonalOrg, k.user.Status.DefaultWorkspace = own, "ws" },
		"they are gone": func(k *kcp) { k.Remove(kcptest.Users, k.user); k.user = nil },
		"it is another": func(k *kcp) { k.user.UID = "another" },
		"on their way":  func(k *kcp) { k.user.DeletionTimestamp = &metav1.Time{Time: began} },
		"the control":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step, made := range []string{"create org", "create workspace"} {
				k := newKCP(t)
				k.converged(t)
				if step == 0 {
					k.discard(own)
					k.user.Status = v1alpha1.UserStatus{}
					k.store()
				} else {
					k.placed(t)
				}
				k.Did, k.stale = nil, k.user.DeepCopy()
				if change == nil {
					_, err := k.pass(t)
					require.NoError(t, err)
					require.Len(t, k.Did, 1)
					require.Contains(t, k.Did[0], made)
					continue
				}
				change(k)
				_, err := k.pass(t)
				require.ErrorIs(t, err, controller.ErrRetry)
				require.Empty(t, k.Did)
			}
		})
	}
}

func TestSignUp_createsNothingWithoutPersonalOrgs(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.bare = true
	k.converged(t)
	require.Empty(t, k.Did)
	require.Empty(t, k.user.Status.PersonalOrg)
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
	require.Equal(t, []string{v1alpha1.CascadeFinalizer}, k.user.Finalizers)
}

// A User without approval gets a personal Org without a Workspace.
func TestSignUp_createsNoWorkspaceForAPendingUser(t *testing.T) {
	t.Parallel()
	for _, registration := range []v1alpha1.Registration{v1alpha1.RegistrationPending, v1alpha1.RegistrationRejected} {
		k := newKCP(t)
		k.user.Spec.Registration = registration
		for range 2 {
			k.converged(t)
			k.placed(t)
		}
		require.Equal(t, []string{"create org " + own}, k.Did)
		require.Contains(t, k.condition(v1alpha1.ConditionDefaultWorkspace).Message, "approval")
		require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

		k.user.Spec.Registration = v1alpha1.RegistrationApproved
		for range 2 {
			k.converged(t)
			k.placed(t)
		}
		k.converged(t)
		require.Len(t, k.workspaces(), 1)
		require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
	}
}

func TestSignUp_createsNothingInADeletedPersonalOrg(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.converged(t)
	k.placed(t)
	k.edit(t, own, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &metav1.Time{Time: began} })
	k.converged(t)
	require.Empty(t, k.workspaces())
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase, "there is nothing to wait for")
	k.edit(t, own, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = nil })
	k.converged(t)
	require.Len(t, k.workspaces(), 1, "undeleted, it is made")
}

// If the personal Org is purged before it has a Workspace, neither is created again, and
// the User becomes Ready without them.
func TestSignUp_endsWithoutAPurgedPersonalOrg(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.converged(t)
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

	// The cache can be outdated, so a missing Org in the cache proves nothing.
	k.unseen = true
	k.converged(t)
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)
	require.Contains(t, k.condition(v1alpha1.ConditionDefaultWorkspace).Message, "is being created")

	k.unknown = true
	k.discard(own)
	_, err := k.converge(t)
	require.Error(t, err)
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

	k.unknown, k.Did = false, nil
	for range 2 {
		k.converged(t)
		require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
		require.Empty(t, k.user.Status.DefaultWorkspace)
		require.Empty(t, k.Did)
	}
}

// Claimed Orgs are created, whatever the state of the personal Org.
func TestO5_settlesClaimsBesideThePersonalOrg(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.user.Spec.OrgClaims = []v1alpha1.Claim{tenancy.NewClaim("claimed", "Claimed", "alice", "", metav1.NewTime(began))}
	k.converged(t)
	require.Equal(t, []string{"create org " + own, "create org claimed"}, k.Did)
	require.True(t, meta.IsStatusConditionTrue(k.user.Status.Conditions, v1alpha1.ConditionClaimsHandled))
}

func TestSignUp_takesTheSpareThatTheUserWasCreatedWith(t *testing.T) {
	t.Parallel()
	const org, ws = "44444444-4444-4444-8444-444444444444", "55555555-5555-4555-8555-555555555555"
	k := newKCP(t)
	k.user.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
	k.spares = map[string]string{org: ws}
	k.converged(t)
	require.Equal(t, org, k.user.Status.PersonalOrg)
	require.Equal(t, ws, k.org(org).Annotations[v1alpha1.DefaultWorkspaceAnnotation])
	k.place(t, org)
	k.converged(t)
	require.Equal(t, []string{"create org " + org, "create workspace " + ws + " in ownorg"}, k.Did)
}

// The annotation is the hub's; whatever it says, nobody gets another's Organization by it.
func TestSignUp_takesNoOrganizationOfAnother(t *testing.T) {
	t.Parallel()
	const org = "44444444-4444-4444-8444-444444444444"
	k := newKCP(t)
	k.user.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
	k.put(org, "org1", in("bob", "", v1alpha1.RoleAdmin))
	k.converged(t)
	require.Empty(t, k.user.Status.PersonalOrg)
	require.Empty(t, k.Did)
	require.Contains(t, k.condition(v1alpha1.ConditionPersonalOrg).Message, "not the person's own")
}

func TestSignUp_givesTheDefaultBilling(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.billing = &v1alpha1.Billing{CostCenter: "4711"}
	k.converged(t)
	require.Equal(t, k.billing, k.org(own).Spec.Billing)
	k.placed(t)
	k.converged(t)
	require.Len(t, k.workspaces(), 1)
	for _, ws := range k.workspaces() {
		require.Equal(t, v1alpha1.RevisedBilling{Billing: *k.billing}, ws.Billing)
	}
}
