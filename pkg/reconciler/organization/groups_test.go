package organization

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// unexpired are views without a Membership that has ended by time.
type unexpired struct{ *kcptest.KCP }

func (unexpired) Expired(string) []*v1alpha1.Membership { return nil }

// The step decides, and the members step carries out what it decided in the next pass.
func TestGroups_areAcceptedAsChangesOfMembers(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC)
	k := unexpired{kcptest.New(t)}
	k.Clock.SetTime(now)
	bob := &v1alpha1.User{}
	bob.Name = "bob"
	bob.Spec.Groups = &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(now.Add(-time.Hour)), Hashes: []v1alpha1.GroupHash{tenancy.HashGroup("kedge:dev")}}
	k.Put(kcptest.Users, bob)
	full, in := false, tenancy.Places{All: 1}
	s := &groups{
		cluster: at("org1"), views: k, maxAge: 24 * time.Hour, full: func() bool { return full }, clock: k.Clock,
		places: func(o *v1alpha1.Organization, user string) tenancy.Places {
			require.Equal(t, "o bob", o.Name+" "+user)
			return in
		},
	}
	o := tenancy.NewOrganization("o", "O", "alice")
	k.PutOrg(o, "org1")
	k.PutWorkspace("org1", "w1", "ws1")
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

	o.Spec.MembershipChanges, in.All, full = nil, tenancy.MaxMemberships, false
	result, err = s.Reconcile(t.Context(), o)
	require.NoError(t, err)
	require.Contains(t, result.Message, "bob")
	require.Empty(t, o.Spec.MembershipChanges)
}
