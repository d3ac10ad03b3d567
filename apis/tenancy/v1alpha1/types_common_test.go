package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestRole_hasTheRightsOfThoseBeforeItAlone(t *testing.T) {
	t.Parallel()
	roles := v1alpha1.Roles()
	for i, role := range roles {
		for j, least := range roles {
			require.Equal(t, i >= j, role.AtLeast(least), "%s %s", role, least)
		}
		for _, unknown := range []v1alpha1.Role{"", "guest", "Admin", "admin "} {
			require.False(t, unknown.AtLeast(role), unknown)
		}
	}
	require.Equal(t, v1alpha1.RoleMember, v1alpha1.WhoMembers.Least())
	for _, who := range []v1alpha1.Who{v1alpha1.WhoAdmin, "", "guests"} {
		require.Equal(t, v1alpha1.RoleAdmin, who.Least(), who)
	}
}
