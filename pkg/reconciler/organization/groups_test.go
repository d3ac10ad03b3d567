package organization

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The step decides, and the members step carries out what it decided in the next pass.
func TestGroups_areAcceptedAsChangesOfMembers(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC)
	bob := &v1alpha1.User{}
	bob.Name = "bob"
	bob.Spec.Groups = &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(now.Add(-time.Hour)), Hashes: []v1alpha1.GroupHash{tenancy.HashGroup("kedge:dev")}}
	count, full := 1, false
	s := &groups{
		Groups: Groups{
			With:   func(v1alpha1.GroupHash) []*v1alpha1.User { return []*v1alpha1.User{bob} },
			Count:  func(string) int { return count },
			Full:   func() bool { return full },
			MaxAge: 24 * time.Hour,
		},
		cluster:     func(string) (string, bool) { return "org1", true },
		memberships: func(string) []*v1alpha1.Membership { return nil },
		children:    func(string) []tenancy.Workspace { return []tenancy.Workspace{{UUID: "w1"}} },
		user:        func(string) (*v1alpha1.User, bool) { return bob, true },
		clock:       clocktesting.NewFakePassiveClock(now),
	}
	o := &v1alpha1.Organization{}
	o.Spec.Groups = []v1alpha1.GroupMapping{
		{ID: "g1", Group: "kedge:dev", Role: v1alpha1.RoleMember, Workspace: "w1"}, {ID: "g2", Group: "kedge:dev", Role: v1alpha1.RoleMember, Workspace: "gone"},
	}
	result, err := s.Reconcile(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, result)
	require.Len(t, o.Spec.MembershipChanges, 1)
	c := o.Spec.MembershipChanges[0]
	require.Equal(t, "w1", c.Workspace)
	require.Equal(t, "group:g1", c.Extra[0].Source)
	require.Equal(t, now.Add(23*time.Hour), c.Extra[0].ExpiresAt.Time)
	require.False(t, tenancy.VoidChange(c, now))

	o.Spec.MembershipChanges, full = nil, true
	result, err = s.Reconcile(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, o.Spec.MembershipChanges, "a group is no way past a full store")
	require.Equal(t, moreEvery, result.RequeueAfter)

	o.Spec.MembershipChanges, count, full = nil, tenancy.MaxMemberships, false
	result, err = s.Reconcile(t.Context(), o)
	require.NoError(t, err)
	require.Contains(t, result.Message, "bob")
	require.Empty(t, o.Spec.MembershipChanges)
}
