package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A role without a rule of its own gives nothing. It is not "a member, because it is no admin".
func TestUnknownRole_isGrantedNothing(t *testing.T) {
	t.Parallel()
	const guest v1alpha1.Role = "guest"
	org := tenancy.Org{Organization: tenancy.NewOrganization(gateOrg, "O", "x")}
	for _, access := range []v1alpha1.DefaultAccess{v1alpha1.DefaultAccessNone, v1alpha1.DefaultAccessView} {
		org.Spec.DefaultAccess = access
		require.Empty(t, tenancy.WorkspaceRole([]v1alpha1.MembershipIndexEntry{row(gateOrg, "", guest), row(gateOrg, gateWS, guest)}, gateOrg, gateWS, access))
		require.Empty(t, tenancy.Grants(org, gateWS, []*v1alpha1.Membership{
			tenancy.NewMembership("x", "", guest), tenancy.NewWorkspaceMembership("x", gateWS, guest, []v1alpha1.RoleRef{{Name: "view"}}, true),
		}, func(string) (*v1alpha1.User, bool) { return &v1alpha1.User{}, true }))
	}
	w := newWorld()
	w.indexes["guest"] = []v1alpha1.MembershipIndexEntry{row(gateOrg, "", guest), row(gateOrg, gateWS, guest), row(gateOpen, "", guest)}
	for _, o := range []string{gateOrg, gateOpen} {
		_, err := w.gate(t).Enter("guest", path(o, gateWS))
		require.True(t, errs.Is(err, errs.Forbidden), o)
	}
	b := newBotWorld()
	b.bot.Spec.Role = guest
	_, _, err := b.gate(t).Check(goodToken(), botTime)
	require.True(t, errs.Is(err, errs.Unauthenticated))
	require.Error(t, tenancy.CheckRole("role", guest))
}

// A viewer, as a role in an Organization, creates nothing there.
func TestLesserRole_createsNothingInTheOrganization(t *testing.T) {
	t.Parallel()
	for _, role := range []v1alpha1.Role{"", "guest", v1alpha1.RoleViewer} {
		for _, who := range []v1alpha1.Who{v1alpha1.WhoMembers, v1alpha1.WhoAdmin} {
			s := tenancy.Scope{OrgRole: role, WorkspaceRole: role, Org: tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "x")}}
			s.Org.Spec.WorkspaceCreation, s.Org.Spec.CatalogEntryCreation = who, who
			for rule, err := range map[string]error{
				"create a workspace": s.RequireWorkspaceCreation(), "publish": s.RequirePublish(),
				"manage the organization": s.RequireOrgAdmin("x"), "manage the workspace": s.RequireWorkspaceAdmin("x"),
			} {
				require.True(t, errs.Is(err, errs.Forbidden), "%s may %s with %s", role, rule, who)
				var refused *errs.Error
				require.ErrorAs(t, err, &refused)
				require.Equal(t, tenancy.CauseRoleTooLow, refused.Causes[0].Type, rule)
			}
		}
	}
}
