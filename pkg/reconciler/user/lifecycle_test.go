package user_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
)

const admin, member = v1alpha1.RoleAdmin, v1alpha1.RoleMember

// bare returns a kcp with a User without a personal Org and with the finalizer.
func bare(t *testing.T) *kcp {
	k := newKCP(t)
	k.bare = true
	k.converged(t)
	return k
}

func TestO8_keepsADeletedPersonForTheWholeGrace(t *testing.T) {
	t.Parallel()
	k := bare(t)
	k.deleted(began)
	for _, c := range []struct {
		passed, left time.Duration
	}{
		{0, grace}, {-10 * time.Minute, grace + 10*time.Minute}, {time.Hour, grace - time.Hour}, {grace - time.Second, time.Second}, {grace - time.Nanosecond, time.Nanosecond},
	} {
		k.Clock.SetTime(began.Add(c.passed))
		after := k.converged(t)
		require.Equal(t, c.left, after, "it is looked at again when it is over")
		require.Empty(t, k.Did)
		require.Equal(t, v1alpha1.PhaseTerminating, k.user.Status.Phase)
		require.Contains(t, k.condition(v1alpha1.ConditionActive).Message, "2026-03-31T12:00:00Z")
	}
	k.Clock.SetTime(began.Add(grace))
	k.hold = true
	require.Equal(t, 15*time.Second, k.converged(t), "purges are held after a restore")
	require.Empty(t, k.Did)
	k.hold = false
	k.converged(t)
	require.Equal(t, []string{"remove the user"}, k.Did)
	require.Nil(t, k.user)
	require.Equal(t, []map[string]int{{"memberships": 0}}, k.purged)
}

// No object is created for a soft-deleted User; after an undelete they are.
func TestO8_createsNothingForADeletedPerson(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.deleted(began)
	k.converged(t)
	require.Empty(t, k.Did)
	k.undeleted()
	k.converged(t)
	require.Equal(t, []string{"create org " + own}, k.Did)
}

func TestO8_neverCarriesOutAWithdrawnDeletion(t *testing.T) {
	t.Parallel()
	k := bare(t)
	k.deleted(began)
	k.Clock.SetTime(began.Add(grace))
	// The undelete comes between the check of the clock and the deletion.
	k.withdrawn = k.undeleted
	k.converged(t)
	require.NotNil(t, k.user)
	require.True(t, k.user.DeletionTimestamp.IsZero())
	require.Equal(t, v1alpha1.PhaseReady, k.user.Status.Phase)
	require.Empty(t, k.purged)
	k.withdrawn = nil
	k.deleted(began)
	k.converged(t)
	require.Nil(t, k.user, "the control: one that stands is")
}

// A hub that was down for the whole grace period can find a User without the finalizer.
// The hub adds the finalizer before the deletion. Without it, the Memberships would
// remain.
func TestO8_removesNobodyBeforeTheFinalizerIsInKcp(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.bare = true
	k.put("acme", "acmecluster", in("bob", "", admin), in("alice", "", member))
	k.deleted(began)
	k.Clock.SetTime(began.Add(2 * grace))
	k.converged(t)
	require.Nil(t, k.user)
	require.Equal(t, []string{"bob admin"}, k.members("acmecluster"))
	require.Equal(t, []map[string]int{{"memberships": 1}}, k.purged)
}

func TestO8_removesThePersonalOrgFirst(t *testing.T) {
	t.Parallel()
	k := newKCP(t)
	k.converged(t)
	k.placed(t)
	k.put("acme", "acmecluster", in("bob", "", admin), in("alice", "", member))
	k.deleted(began)
	k.Clock.SetTime(began.Add(grace))
	k.Did = nil
	k.converged(t)
	require.Nil(t, k.user)
	require.Equal(t, []string{"remove the user", "remove org " + own, "list acmecluster", "list acmecluster", "remove alice"}, k.Did)
	require.True(t, k.has("acme"), "what others have is left alone")
}

// An Org that would lose its last admin gets another one or is soft-deleted.
func TestO8_givesTheOrgOfADeletedAdminAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		members  []*v1alpha1.Membership
		inactive []string
		want     []string
		deleted  bool
	}{
		"a member leaves no gap":                {members: []*v1alpha1.Membership{in("alice", "", member), in("bob", "", admin)}, want: []string{"bob admin"}},
		"another admin is there":                {members: []*v1alpha1.Membership{in("alice", "", admin), in("bob", "", member), in("carol", "", admin)}, want: []string{"bob member", "carol admin"}},
		"the longest-standing is promoted":      {members: []*v1alpha1.Membership{in("alice", "", admin), in("carol", "", member), in("bob", "", member)}, want: []string{"bob member", "carol admin"}},
		"of those who can act":                  {members: []*v1alpha1.Membership{in("alice", "", admin), in("carol", "", member), in("bob", "", member)}, inactive: []string{"carol"}, want: []string{"bob admin", "carol member"}},
		"before an admin who cannot":            {members: []*v1alpha1.Membership{in("alice", "", admin), in("carol", "", admin), in("bob", "", member)}, inactive: []string{"carol"}, want: []string{"bob admin", "carol admin"}},
		"an admin who cannot act, alone":        {members: []*v1alpha1.Membership{in("alice", "", admin), in("carol", "", admin)}, inactive: []string{"carol"}, want: []string{"carol admin"}},
		"a member who cannot act, alone":        {members: []*v1alpha1.Membership{in("alice", "", admin), in("carol", "", member)}, inactive: []string{"carol"}, want: []string{"carol admin"}},
		"nobody else":                           {members: []*v1alpha1.Membership{in("alice", "", admin)}, want: []string{}, deleted: true},
		"nobody else but in a Workspace":        {members: []*v1alpha1.Membership{in("alice", "", admin), in("bob", "w", admin)}, want: []string{"w.bob admin"}, deleted: true},
		"Workspaces go, too":                    {members: []*v1alpha1.Membership{in("alice", "w", admin), in("alice", "", member), in("alice", "v", member), in("bob", "", admin), in("bob", "w", member)}, want: []string{"bob admin", "w.bob member"}},
		"in a Workspace alone":                  {members: []*v1alpha1.Membership{in("alice", "w", admin), in("bob", "", admin)}, want: []string{"bob admin"}},
		"in a Workspace alone, of an empty Org": {members: []*v1alpha1.Membership{in("alice", "w", admin)}, want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := bare(t)
			k.put("acme", "acmecluster", c.members...)
			for _, name := range c.inactive {
				k.inactive[name] = true
			}
			mine := 0
			for _, m := range c.members {
				if m.Spec.UserRef.Name == "alice" {
					mine++
				}
			}
			k.deleted(began)
			k.Clock.SetTime(began.Add(grace))
			k.converged(t)
			require.Nil(t, k.user)
			require.Equal(t, c.want, k.members("acmecluster"))
			require.Equal(t, c.deleted, k.org("acme").Deleted())
			if c.deleted {
				require.Equal(t, began.Add(grace), k.org("acme").Status.DeletionRequestedAt.UTC(), "with its own full grace")
			}
			require.Equal(t, []map[string]int{{"memberships": mine}}, k.purged)
			if i := slices.Index(k.Did, "remove alice"); i >= 0 {
				require.NotContains(t, k.Did[i:], "remove w.alice", "rows of Workspaces go first")
				require.NotContains(t, k.Did[i:], "make bob admin", "there is an admin at every moment")
			}
		})
	}
}

// The heir may be somebody whom the lost hub has removed since the backup, and it makes what it has accepted meanwhile.
func TestCascade_namesNoHeirWhileARestoredHubReplays(t *testing.T) {
	t.Parallel()
	k := bare(t)
	k.put("acme", "acmecluster", in("alice", "", admin), in("bob", "", member))
	k.user.DeletionTimestamp = &metav1.Time{Time: began}
	k.replaying = true
	k.converged(t)
	require.Empty(t, k.Did)
	require.Equal(t, []string{"alice admin", "bob member"}, k.members("acmecluster"))
	k.replaying = false
	k.converged(t)
	require.Nil(t, k.user)
	require.Equal(t, []string{"bob admin"}, k.members("acmecluster"))
}

func TestCascade_keepsTheGraceOfADeletedOrg(t *testing.T) {
	t.Parallel()
	k := bare(t)
	k.put("acme", "acmecluster", in("alice", "", admin))
	k.edit(t, "acme", func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &metav1.Time{Time: began} })
	// For this Org, only the Memberships are left.
	k.put("gone", "gonecluster", in("alice", "", admin))
	k.discard("gone")
	k.deleted(began)
	k.Clock.SetTime(began.Add(grace))
	k.converged(t)
	require.Nil(t, k.user)
	require.Equal(t, began, k.org("acme").Status.DeletionRequestedAt.UTC())
	require.NotContains(t, k.Did, "delete org acme")
}

// Whichever call fails, and whether or not kcp carried it out, the cascade ends in the
// same state.
func TestO8_cascadeGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			k := newKCP(t)
			k.converged(t)
			k.placed(t)
			k.put("acme", "acmecluster", in("alice", "", admin), in("alice", "w", admin), in("carol", "", member), in("bob", "", member))
			k.put("lone", "lonecluster", in("alice", "", admin))
			k.deleted(began)
			k.Clock.SetTime(began.Add(grace))
			k.Made, k.Fails, k.Late = 0, n, late
			stopped := 0
			for k.user != nil {
				if _, err := k.converge(t); err != nil {
					require.Error(t, err)
					stopped++
				}
				require.LessOrEqual(t, stopped, 1)
			}
			require.Equal(t, []string{"bob member", "carol admin"}, k.members("acmecluster"), "call %d, late %v", n, late)
			require.Empty(t, k.members("lonecluster"))
			require.True(t, k.org("lone").Deleted())
			require.False(t, k.has(own))
			require.Equal(t, []map[string]int{{"memberships": 3}}, k.purged, "what went before it was stopped counts")
			if stopped == 0 {
				require.Equal(t, 12, n, "the control: every call has failed once")
				break
			}
		}
	}
}

// A failed removal of the finalizer does not repeat the audit event. After a restart the
// event may be repeated, but it is never lost.
func TestO8_auditsARemovedPersonOnce(t *testing.T) {
	t.Parallel()
	for restarted, want := range map[bool]int{false: 1, true: 4} {
		k := bare(t)
		if !restarted {
			k.running = user.New(k.config())
		}
		k.put("acme", "acmecluster", in("bob", "", admin), in("alice", "", member))
		k.deleted(began)
		k.Clock.SetTime(began.Add(grace))
		k.holds = 3
		for range 3 {
			_, err := k.converge(t)
			require.Error(t, err)
			require.NotNil(t, k.user)
		}
		k.converged(t)
		require.Nil(t, k.user)
		require.Len(t, k.purged, want)
		for _, counts := range k.purged {
			require.Equal(t, map[string]int{"memberships": 1}, counts)
		}
	}
}

// After the hub's cascade, the User exists until the owner of another finalizer removes
// it.
func TestCascade_doesNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	k := bare(t)
	now := metav1.NewTime(began)
	k.user.DeletionTimestamp, k.user.Finalizers = &now, []string{"example.com/other"}
	k.put("acme", "acmecluster", in("alice", "", admin))
	k.converged(t)
	require.Empty(t, k.Did)
	require.Empty(t, k.purged)
	require.Equal(t, []string{"alice admin"}, k.members("acmecluster"))
}
