package user_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// placed makes alice's Org and its Workspace Ready.
func (k *kcp) placed() {
	o := k.orgs[own]
	o.Organization, o.ClusterID = o.DeepCopy(), "ownorg"
	o.Status.Phase = v1alpha1.PhaseReady
	k.orgs[own] = o
	for uuid, ws := range k.workspaces {
		ws.KCPReady, ws.ClusterID, ws.Status.Phase = true, "ownws", v1alpha1.PhaseReady
		k.workspaces[uuid] = ws
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
	k := newKCP()
	k.converged(t)
	require.Equal(t, []string{v1alpha1.CascadeFinalizer}, k.user.Finalizers, "nothing is made that could be left behind")
	require.Equal(t, []string{"create org " + own}, k.Did)
	require.Equal(t, own, k.user.Status.PersonalOrg)
	require.True(t, k.orgs[own].Spec.Personal)
	require.Equal(t, "alice", k.orgs[own].CreatedBy())
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

	k.placed()
	k.converged(t)
	ws := tenancy.NewDefaultWorkspace(k.orgs[own]).UUID
	require.Equal(t, []string{"create org " + own, "create workspace " + ws + " in ownorg"}, k.Did)
	require.Empty(t, k.user.Status.DefaultWorkspace, "kcp is still at it")

	k.placed()
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
		k.user = k.user.DeepCopy()
		alter(k.user)
		k.converged(t)
		require.Equal(t, []string{own, ws, "ownws"}, []string{k.user.Status.PersonalOrg, k.user.Status.DefaultWorkspace, k.user.Spec.DefaultCluster})
		require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
		require.Len(t, k.Did, 2, "nothing is made anew")
	}

	// Sign-up happens once: objects that the person deleted are not created again.
	delete(k.workspaces, ws)
	delete(k.orgs, own)
	k.Did = nil
	k.converged(t)
	require.Empty(t, k.Did)
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
}

func TestO11_signUpGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for fails := 1; fails <= 2; fails++ {
			k := newKCP()
			k.Fails, k.Late = fails, late
			failed := false
			for range 4 {
				_, err := k.converge(t)
				if err != nil {
					require.ErrorIs(t, err, kcptest.ErrDown)
					require.NotContains(t, fmt.Sprint(k.user.Status.Conditions), kcptest.ErrDown.Error())
					require.NotEqual(t, v1alpha1.PhaseReady, k.user.Status.Phase)
					failed = true
				}
				if _, ok := k.orgs[own]; ok {
					k.placed()
				}
			}
			require.True(t, failed, "call %d", fails)
			require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase, "call %d, late %v", fails, late)
			require.Len(t, k.orgs, 1)
			require.Len(t, k.workspaces, 1)
		}
	}
}

// A leader that was paused has an outdated cache. The User in it looks new, although the
// objects were created, and possibly deleted, since.
func TestSignUp_createsNothingTwiceFromAStaleCache(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(u *v1alpha1.User) error{
		"it was made":   func(u *v1alpha1.User) error { u.Status.PersonalOrg, u.Status.DefaultWorkspace = own, "ws"; return nil },
		"they are gone": func(*v1alpha1.User) error { return controller.ErrRetry },
		"it is another": func(u *v1alpha1.User) error { u.UID = "another"; return nil },
		"on their way":  func(u *v1alpha1.User) error { u.DeletionTimestamp = &metav1.Time{Time: began}; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKCP()
			now := func() (*v1alpha1.User, error) {
				u := k.user.DeepCopy()
				return u, change(u)
			}
			k.converged(t)
			placed, org := k.user, k.orgs[own]
			pass := func() (controller.Result, error) {
				return user.New(k.config(t))(t.Context(), controller.Key{Name: "alice"})
			}
			for step, made := range []string{"create org", "create workspace"} {
				if step == 0 {
					k.user, k.orgs = placed.DeepCopy(), map[string]tenancy.Org{}
					k.user.Status = v1alpha1.UserStatus{}
				} else {
					k.user, k.orgs = placed.DeepCopy(), map[string]tenancy.Org{own: org}
					k.placed()
				}
				k.Did, k.now = nil, now
				_, err := pass()
				require.ErrorIs(t, err, controller.ErrRetry)
				require.Empty(t, k.Did)
				k.now = nil
				_, err = pass()
				require.NoError(t, err)
				require.Len(t, k.Did, 1, "the control")
				require.Contains(t, k.Did[0], made)
			}
		})
	}
}

func TestSignUp_createsNothingWithoutPersonalOrgs(t *testing.T) {
	t.Parallel()
	k := newKCP()
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
		k := newKCP()
		k.user.Spec.Registration = registration
		for range 2 {
			k.converged(t)
			k.placed()
		}
		require.Equal(t, []string{"create org " + own}, k.Did)
		require.Contains(t, k.condition(v1alpha1.ConditionDefaultWorkspace).Message, "approval")
		require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

		k.user = k.user.DeepCopy()
		k.user.Spec.Registration = v1alpha1.RegistrationApproved
		for range 2 {
			k.converged(t)
			k.placed()
		}
		k.converged(t)
		require.Len(t, k.workspaces, 1)
		require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
	}
}

func TestSignUp_createsNothingInADeletedPersonalOrg(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.converged(t)
	k.placed()
	o := k.orgs[own]
	o.Status.DeletionRequestedAt = &metav1.Time{Time: began}
	k.converged(t)
	require.Empty(t, k.workspaces)
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase, "there is nothing to wait for")
	o.Status.DeletionRequestedAt = nil
	k.converged(t)
	require.Len(t, k.workspaces, 1, "undeleted, it is made")
}

// If the personal Org is purged before it has a Workspace, neither is created again, and
// the User becomes Ready without them.
func TestSignUp_endsWithoutAPurgedPersonalOrg(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.converged(t)
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

	// The cache can be outdated, so a missing Org in the cache proves nothing.
	k.unseen = true
	k.converged(t)
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)
	require.Contains(t, k.condition(v1alpha1.ConditionDefaultWorkspace).Message, "is being created")

	k.unknown = kcptest.ErrDown
	delete(k.orgs, own)
	_, err := k.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	require.Equal(t, v1alpha1.PhaseProgressing, k.user.Status.Phase)

	k.unknown, k.Did = nil, nil
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
	k := newKCP()
	k.user.Spec.OrgClaims = []v1alpha1.Claim{tenancy.NewClaim("claimed", "Claimed", "alice", "", metav1.NewTime(began))}
	k.converged(t)
	require.Equal(t, []string{"create org " + own, "create org claimed"}, k.Did)
	require.True(t, meta.IsStatusConditionTrue(k.user.Status.Conditions, v1alpha1.ConditionClaimsHandled))
}

func TestSignUp_takesTheSpareThatTheUserWasCreatedWith(t *testing.T) {
	t.Parallel()
	const org, ws = "44444444-4444-4444-8444-444444444444", "55555555-5555-4555-8555-555555555555"
	k := newKCP()
	k.user.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
	k.spares = map[string]string{org: ws}
	k.converged(t)
	require.Equal(t, org, k.user.Status.PersonalOrg)
	made := k.orgs[org]
	require.Equal(t, ws, made.Annotations[v1alpha1.DefaultWorkspaceAnnotation])
	made.Organization, made.ClusterID = made.DeepCopy(), "ownorg"
	made.Status.Phase = v1alpha1.PhaseReady
	k.orgs[org] = made
	k.converged(t)
	require.Equal(t, []string{"create org " + org, "create workspace " + ws + " in ownorg"}, k.Did)
}

// The annotation is the hub's; whatever it says, nobody gets another's Organization by it.
func TestSignUp_takesNoOrganizationOfAnother(t *testing.T) {
	t.Parallel()
	const org = "44444444-4444-4444-8444-444444444444"
	k := newKCP()
	k.user.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: org}
	k.put(org, "org1", in("bob", "", v1alpha1.RoleAdmin))
	k.converged(t)
	require.Empty(t, k.user.Status.PersonalOrg)
	require.Empty(t, k.Did)
	require.Contains(t, k.condition(v1alpha1.ConditionPersonalOrg).Message, "not the person's own")
}

func TestSignUp_givesTheDefaultBilling(t *testing.T) {
	t.Parallel()
	k := newKCP()
	k.billing = &v1alpha1.Billing{CostCenter: "4711"}
	k.converged(t)
	require.Equal(t, k.billing, k.orgs[own].Spec.Billing)
	k.placed()
	k.converged(t)
	require.Len(t, k.workspaces, 1)
	for _, ws := range k.workspaces {
		require.Equal(t, v1alpha1.RevisedBilling{Billing: *k.billing}, ws.Billing)
	}
}
