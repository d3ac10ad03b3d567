package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// What a request or a group gives ends when it is revoked. Nobody keeps it by giving it to themselves by hand, also not with its end.
func TestEdit_nobodyKeepsWhatIsLent(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{"a request": tenancy.RequestSource("r1"), "a group": tenancy.GroupSource("g1")} {
		o := &v1alpha1.Organization{}
		o.Name = partOrg
		s := tenancy.Scope{User: "bob", Org: tenancy.Org{Organization: o}, Workspace: &tenancy.Workspace{UUID: partWorkspace}}
		may := func(s tenancy.Scope) error { return s.RequireGrant(v1alpha1.RoleAdmin, "add people") }
		held := tenancy.NewWorkspaceMembership("bob", partWorkspace, v1alpha1.RoleMember, nil, false)
		held.UID, held.Generation = "u1", 2
		held.Spec.Extra = []v1alpha1.MembershipExtra{{Source: source, Role: v1alpha1.RoleAdmin, ExpiresAt: endIn(time.Hour)}}
		standing := s.StandingOf(o, nil, held, partsNow, may)
		require.True(t, standing.Lent, name)
		require.Equal(t, endIn(time.Hour), standing.Until, name)

		edit := tenancy.MemberEdit{
			User: "bob", By: "bob", Workspace: partWorkspace, Role: v1alpha1.RoleAdmin, Expiry: &tenancy.Expiry{At: endIn(time.Hour)},
			Author: standing, At: metav1.NewMicroTime(partsNow),
		}
		_, err := tenancy.DecideEdit(o, held, edit)
		requireCause(t, err, tenancy.CauseOwnRight)
		edit.Author.Lent = false
		_, err = tenancy.DecideEdit(o, held, edit)
		require.NoError(t, err, name)
		less := tenancy.MemberEdit{User: "bob", By: "bob", Workspace: partWorkspace, Role: v1alpha1.RoleViewer, Author: standing, At: edit.At}
		_, err = tenancy.DecideEdit(o, held, less)
		require.NoError(t, err, "they may have less")

		held.Spec.Role = v1alpha1.RoleAdmin
		require.False(t, s.StandingOf(o, nil, held, partsNow, may).Lent, "what is by hand suffices")

		// What is lent lasts longer than what is by hand, and prolongs it for nobody.
		held.Spec.ExpiresAt = endIn(time.Minute)
		edit.Author = s.StandingOf(o, nil, held, partsNow, may)
		require.Equal(t, tenancy.Standing{Until: endIn(time.Hour), ByGroup: edit.Author.ByGroup, ByHand: endIn(time.Minute)}, edit.Author, name)
		_, err = tenancy.DecideEdit(o, held, edit)
		requireCause(t, err, tenancy.CauseOwnRight)
		require.Equal(t, endIn(time.Minute), edit.Author.Own(), "a Workspace that they make")
	}
}

// Who is admin by a group alone maps other groups of theirs for less, and none that makes them admin when they leave the first.
func TestProlonged_aGroupKeepsNobodyAdminWhoLeavesAnother(t *testing.T) {
	t.Parallel()
	lent := tenancy.Standing{Until: endIn(time.Hour), ByGroup: tenancy.GroupSource("g1"), Lent: true}
	require.True(t, lent.Prolonged(v1alpha1.GroupMapping{Role: v1alpha1.RoleAdmin}))
	require.False(t, lent.Prolonged(v1alpha1.GroupMapping{Role: v1alpha1.RoleMember}))
	lent.ByGroup = ""
	require.True(t, lent.Prolonged(v1alpha1.GroupMapping{Role: v1alpha1.RoleMember}), "by a request")
	require.False(t, tenancy.Standing{Until: endIn(time.Hour)}.Prolonged(v1alpha1.GroupMapping{Role: v1alpha1.RoleAdmin}), "by hand, without an end")
}

// An edit of a Membership that was removed meanwhile gives nothing to the next one of that person.
func TestDecideEdit_buildsOnNothingThatIsVoid(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{
		User: "bob", Workspace: partWorkspace, UID: "gone", Role: v1alpha1.RoleMember, Sudo: true, Manager: true, Roles: []v1alpha1.RoleRef{{Name: "ops"}},
	}}
	add := tenancy.MemberEdit{User: "bob", By: "alice", Workspace: partWorkspace, Add: true, Role: v1alpha1.RoleMember, At: metav1.NewMicroTime(partsNow)}
	changes, err := tenancy.DecideEdit(o, nil, add)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.MembershipChange{{
		User: "bob", Workspace: partWorkspace, Role: v1alpha1.RoleMember, By: "alice", RequestedAt: metav1.NewMicroTime(partsNow),
	}}, changes)
}
