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
	}
}
