package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestHoldersAt_followTheRulesOfRequests(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	since := at.Add(-time.Hour)
	fact := func(kind tenancy.FactKind, workspace, subject, token string, f tenancy.AccessFact) tenancy.HeldFact {
		return tenancy.HeldFact{FactKey: tenancy.FactKey{Kind: kind, Org: "o", Workspace: workspace, Subject: subject, Token: token}, AccessFact: f, Since: since}
	}
	member := func(workspace, user string, f tenancy.AccessFact) tenancy.HeldFact {
		return fact(tenancy.FactMember, workspace, user, "", f)
	}
	facts := []tenancy.HeldFact{
		fact(tenancy.FactOrg, "", "", "", tenancy.AccessFact{DefaultAccess: v1alpha1.DefaultAccessView}),
		fact(tenancy.FactWorkspace, "web", "", "", tenancy.AccessFact{}),
		fact(tenancy.FactWorkspace, "over", "", "", tenancy.AccessFact{ExpiresAt: at.Format(time.RFC3339)}),
		member("", "admin", tenancy.AccessFact{Role: v1alpha1.RoleAdmin, Sources: `["hand"]`}),
		member("", "looker", tenancy.AccessFact{Role: v1alpha1.RoleMember}),
		member("", "ended", tenancy.AccessFact{Role: v1alpha1.RoleMember, ExpiresAt: at.Format(time.RFC3339)}),
		member("web", "dev", tenancy.AccessFact{Role: v1alpha1.RoleMember, Sudo: true, Roles: `[{"name":"dev","namespace":"web"}]`, ExpiresAt: at.Add(time.Second).Format(time.RFC3339)}),
		member("web", "manager", tenancy.AccessFact{Manager: true}),
		member("over", "dev", tenancy.AccessFact{Role: v1alpha1.RoleAdmin}),
		fact(tenancy.FactBot, "web", "b", "", tenancy.AccessFact{Name: "CI", Role: v1alpha1.RoleViewer}),
		fact(tenancy.FactToken, "web", "b", "old", tenancy.AccessFact{ExpiresAt: since.Format(time.RFC3339)}),
		fact(tenancy.FactToken, "web", "b", "t", tenancy.AccessFact{Name: "laptop"}),
		{FactKey: tenancy.FactKey{Kind: tenancy.FactMember, Org: "another", Subject: "stranger"}, AccessFact: tenancy.AccessFact{Role: v1alpha1.RoleAdmin}},
	}
	source := func(through tenancy.Through, role v1alpha1.Role) tenancy.HeldSource {
		return tenancy.HeldSource{Source: tenancy.Source{Through: through, Role: role}, Since: since}
	}
	end := at.Add(time.Second)
	byHand, implied := source(tenancy.ThroughMembership, v1alpha1.RoleAdmin), source(tenancy.ThroughOrgAdmin, v1alpha1.RoleAdmin)
	byHand.Sources, implied.Sources = []string{"hand"}, []string{"hand"}
	ending := source(tenancy.ThroughMembership, v1alpha1.RoleMember)
	ending.ExpiresAt = &end
	viewing := []tenancy.HeldSource{source(tenancy.ThroughDefaultAccess, v1alpha1.RoleViewer)}
	dev := tenancy.Holder{
		Workspace: "web", User: "dev", Role: v1alpha1.RoleMember, Sudo: true, Roles: []v1alpha1.RoleRef{{Name: "dev", Namespace: "web"}},
		Through: []tenancy.HeldSource{ending},
	}
	manager := tenancy.Holder{Workspace: "web", User: "manager", Manager: true}
	bot := tenancy.Holder{
		Workspace: "web", Bot: "b", Name: "CI", Role: v1alpha1.RoleViewer, Through: []tenancy.HeldSource{source(tenancy.ThroughBot, v1alpha1.RoleViewer)},
		Tokens: []tenancy.HeldToken{{ID: "t", Name: "laptop", Since: since}},
	}

	active, holders := tenancy.HoldersAt(facts, "o", "web", at)
	require.True(t, active)
	require.Equal(t, []tenancy.Holder{
		{Workspace: "web", User: "admin", Role: v1alpha1.RoleAdmin, Through: []tenancy.HeldSource{implied}}, dev,
		{Workspace: "web", User: "looker", Role: v1alpha1.RoleViewer, Through: viewing}, manager, bot,
	}, holders)

	active, holders = tenancy.HoldersAt(facts, "o", "", at)
	require.True(t, active)
	require.Equal(t, []tenancy.Holder{
		{User: "admin", Role: v1alpha1.RoleAdmin, Through: []tenancy.HeldSource{byHand}, EveryWorkspace: []tenancy.HeldSource{implied}},
		{User: "looker", Role: v1alpha1.RoleMember, Through: []tenancy.HeldSource{source(tenancy.ThroughMembership, v1alpha1.RoleMember)}, EveryWorkspace: viewing},
		dev, manager, bot,
	}, holders)

	for _, place := range [][2]string{{"o", "over"}, {"o", "none"}, {"none", ""}} {
		active, holders = tenancy.HoldersAt(facts, place[0], place[1], at)
		require.False(t, active, place)
		require.Empty(t, holders, place)
	}
}
