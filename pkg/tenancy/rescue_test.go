package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A repetition changes nothing. What is a repetition depends on the key, and on what the first request has left.
func TestDecideRescue_changesNothingForARepetition(t *testing.T) {
	t.Parallel()
	everybody := func(string) bool { return true }
	r := tenancy.Rescue{User: "bob", By: "root", Key: "key", At: metav1.NewMicroTime(partsNow)}
	o := &v1alpha1.Organization{}
	changes, err := tenancy.DecideRescue(o, nil, r, everybody)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	o.Spec.MembershipChanges = changes
	require.False(t, r.Repeats(o, nil), "it is written with its key")
	o.Annotations = map[string]string{v1alpha1.RescueAnnotation: "key"}
	require.True(t, r.Repeats(o, nil), "the change waits")
	o.Spec.MembershipChanges = nil
	require.False(t, r.Repeats(o, nil), "the person has left since")
	admin := tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)
	inWorkspace := tenancy.NewMembership("bob", "w", v1alpha1.RoleAdmin)
	require.False(t, r.Repeats(o, []*v1alpha1.Membership{inWorkspace, tenancy.NewMembership("bob", "", v1alpha1.RoleMember)}), "demoted since")
	held := []*v1alpha1.Membership{inWorkspace, admin}
	require.True(t, r.Repeats(o, held))
	changes, err = tenancy.DecideRescue(o, held, r, everybody)
	require.NoError(t, err)
	require.Empty(t, changes)
	for _, key := range []string{"", "another"} {
		other := r
		other.Key = key
		_, err = tenancy.DecideRescue(o, held, other, everybody)
		require.True(t, errs.Is(err, errs.Conflict), key)
	}
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob", UID: admin.UID, Generation: admin.Generation}}
	require.False(t, r.Repeats(o, held), "the person is being removed")
}

func TestDecideRescue_isForOrganizationsThatNobodyCanAdminister(t *testing.T) {
	t.Parallel()
	at := metav1.NewMicroTime(partsNow)
	member := func(user string, role v1alpha1.Role, change ...func(*v1alpha1.Membership)) *v1alpha1.Membership {
		m := tenancy.NewMembership(user, "", role)
		for _, c := range change {
			c(m)
		}
		return m
	}
	ends := func(m *v1alpha1.Membership) { m.Spec.ExpiresAt = endIn(1) }
	byGroup := func(m *v1alpha1.Membership) {
		m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: "group:g1", Role: v1alpha1.RoleAdmin}}
	}
	for name, c := range map[string]struct {
		held   []*v1alpha1.Membership
		change func(*v1alpha1.Organization, *tenancy.Rescue)
		code   errs.Code
		cause  string
	}{
		"nobody is left":                  {},
		"the admin is gone":               {held: []*v1alpha1.Membership{member("gone", v1alpha1.RoleAdmin), member("carol", v1alpha1.RoleMember)}},
		"the person is a member":          {held: []*v1alpha1.Membership{member("gone", v1alpha1.RoleAdmin), member("bob", v1alpha1.RoleMember)}},
		"the person is admin for a while": {held: []*v1alpha1.Membership{member("bob", v1alpha1.RoleAdmin, ends)}},
		"an admin for a while":            {held: []*v1alpha1.Membership{member("carol", v1alpha1.RoleAdmin, ends)}},
		"an admin by a group":             {held: []*v1alpha1.Membership{member("carol", "", byGroup)}},
		"an admin can act": {
			held: []*v1alpha1.Membership{member("carol", v1alpha1.RoleAdmin)}, code: errs.Conflict, cause: tenancy.CauseAdminReachable,
		},
		"the person is admin": {
			held: []*v1alpha1.Membership{member("bob", v1alpha1.RoleAdmin)}, code: errs.Conflict, cause: tenancy.CauseAdminReachable,
		},
		"a personal organization": {change: func(o *v1alpha1.Organization, _ *tenancy.Rescue) { o.Spec.Personal = true }, code: errs.Conflict},
		"a deleted organization": {change: func(o *v1alpha1.Organization, _ *tenancy.Rescue) {
			o.Status.DeletionRequestedAt = endIn(0)
		}, code: errs.Conflict},
		"the platform admin as the person": {change: func(_ *v1alpha1.Organization, r *tenancy.Rescue) { r.By = "bob" }, code: errs.Forbidden},
		"a person who cannot act":          {change: func(_ *v1alpha1.Organization, r *tenancy.Rescue) { r.User = "gone" }, code: errs.Conflict},
	} {
		o := &v1alpha1.Organization{}
		r := tenancy.Rescue{User: "bob", By: "root", At: at}
		if c.change != nil {
			c.change(o, &r)
		}
		changes, err := tenancy.DecideRescue(o, c.held, r, func(user string) bool { return user != "gone" })
		if c.code != 0 {
			require.True(t, errs.Is(err, c.code), "%s: %v", name, err)
			var refused *errs.Error
			require.ErrorAs(t, err, &refused, name)
			if c.cause != "" {
				require.Equal(t, c.cause, refused.Causes[0].Type, name)
			}
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, changes, 1, name)
		require.Equal(t, "bob", changes[0].User, name)
		require.Equal(t, v1alpha1.RoleAdmin, changes[0].Role, name)
		require.Nil(t, changes[0].ExpiresAt, name)
		require.Equal(t, "root", changes[0].By, name)
	}
}
