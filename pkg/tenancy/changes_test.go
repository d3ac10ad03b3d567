package tenancy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const member, admin = v1alpha1.RoleMember, v1alpha1.RoleAdmin

// in returns a Membership as stored in kcp: of the Organization, or of a Workspace.
func in(user, workspace string, role v1alpha1.Role) v1alpha1.Membership {
	m := tenancy.NewMembership(user, workspace, role)
	m.UID, m.Generation = types.UID("uid of "+m.Name), 1
	return *m
}

// pointers returns pointers to Memberships.
func pointers(memberships []v1alpha1.Membership) (all []*v1alpha1.Membership) {
	for i := range memberships {
		all = append(all, &memberships[i])
	}
	return all
}

// change returns a change of a User's Membership in the Organization.
func change(user string, role v1alpha1.Role, cascade bool) v1alpha1.MembershipChange {
	return v1alpha1.MembershipChange{User: user, UID: types.UID("uid of " + user), Generation: 1, Role: role, Cascade: cascade, RequestedAt: at}
}

// void returns a change of a Membership that was recreated since.
func void(user string, role v1alpha1.Role) v1alpha1.MembershipChange {
	c := change(user, role, false)
	c.Generation = 0
	return c
}

var at = metav1.NewMicroTime(time.Unix(1_000, 0))

func TestDecideEnding_appliesO9(t *testing.T) {
	t.Parallel()
	type memberships = []v1alpha1.Membership
	type changes = []v1alpha1.MembershipChange
	two := memberships{in("alice", "", admin), in("bob", "", admin)}
	team := memberships{in("alice", "", admin), in("bob", "", member)}
	working := append(slices.Clone(team), in("bob", "w", admin), in("bob", "v", member), in("carol", "w", member))
	for name, c := range map[string]struct {
		held     memberships
		pending  changes
		ending   tenancy.Ending
		inactive string
		want     changes
		code     errs.Code
		cause    string
	}{
		"a member is removed":                             {held: team, ending: tenancy.Ending{By: "alice", User: "bob"}, want: changes{change("bob", "", false)}},
		"a member leaves":                                 {held: team, ending: tenancy.Ending{By: "bob", User: "bob"}, want: changes{change("bob", "", false)}},
		"one of two admins leaves":                        {held: two, ending: tenancy.Ending{By: "alice", User: "alice"}, want: changes{change("alice", "", false)}},
		"one of two admins steps back":                    {held: two, ending: tenancy.Ending{By: "alice", User: "alice", Role: member}, want: changes{change("alice", member, false)}},
		"an admin is demoted by the other":                {held: two, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}, want: changes{change("bob", member, false)}},
		"an admin is removed by the other":                {held: two, ending: tenancy.Ending{By: "alice", User: "bob"}, want: changes{change("bob", "", false)}},
		"the only admin leaves":                           {held: team, ending: tenancy.Ending{By: "alice", User: "alice"}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the only admin leaves with all they have":        {held: team, ending: tenancy.Ending{By: "alice", User: "alice", Cascade: true}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the only admin, in workspaces, leaves":           {held: append(slices.Clone(team), in("alice", "w", admin)), ending: tenancy.Ending{By: "alice", User: "alice"}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the only admin steps back":                       {held: team, ending: tenancy.Ending{By: "alice", User: "alice", Role: member}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the other admin is not active":                   {held: two, ending: tenancy.Ending{By: "alice", User: "alice"}, inactive: "bob", code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the other admin is not active, stepping back":    {held: two, ending: tenancy.Ending{By: "alice", User: "alice", Role: member}, inactive: "bob", code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the inactive one is removed":                     {held: two, ending: tenancy.Ending{By: "alice", User: "bob"}, inactive: "bob", want: changes{change("bob", "", false)}},
		"an admin of a workspace is none of the Org":      {held: append(slices.Clone(team), in("carol", "w", admin)), ending: tenancy.Ending{By: "alice", User: "alice"}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the other admin is being removed":                {held: two, pending: changes{change("bob", "", false)}, ending: tenancy.Ending{By: "alice", User: "alice"}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"the other admin is being demoted":                {held: two, pending: changes{change("bob", member, false)}, ending: tenancy.Ending{By: "alice", User: "alice", Role: member}, code: errs.Conflict, cause: tenancy.CauseSoleAdmin},
		"by one who is being demoted":                     {held: two, pending: changes{change("bob", member, false)}, ending: tenancy.Ending{By: "bob", User: "alice", Role: member}, code: errs.Forbidden},
		"by one who is being removed":                     {held: two, pending: changes{change("bob", "", false)}, ending: tenancy.Ending{By: "bob", User: "alice"}, code: errs.Forbidden},
		"by one who was demoted":                          {held: team, ending: tenancy.Ending{By: "bob", User: "alice"}, code: errs.Forbidden},
		"by one who was removed":                          {held: team, ending: tenancy.Ending{By: "carol", User: "bob"}, code: errs.Forbidden},
		"by one who was deleted":                          {held: two, ending: tenancy.Ending{By: "bob", User: "alice"}, inactive: "bob", code: errs.Forbidden},
		"by an admin of a workspace":                      {held: working, ending: tenancy.Ending{By: "bob", User: "alice"}, code: errs.Forbidden},
		"of nobody":                                       {held: team, ending: tenancy.Ending{By: "alice", User: "carol"}, code: errs.NotFound},
		"of one who is in a workspace alone":              {held: working, ending: tenancy.Ending{By: "alice", User: "carol", Cascade: true}, code: errs.NotFound},
		"one who left leaves":                             {held: team, ending: tenancy.Ending{By: "carol", User: "carol"}, code: errs.NotFound},
		"still in workspaces":                             {held: working, ending: tenancy.Ending{By: "alice", User: "bob"}, code: errs.Conflict, cause: tenancy.CauseWorkspaceMembership},
		"leaves while still in workspaces":                {held: working, ending: tenancy.Ending{By: "bob", User: "bob"}, code: errs.Conflict, cause: tenancy.CauseWorkspaceMembership},
		"with a cascade":                                  {held: working, ending: tenancy.Ending{By: "alice", User: "bob", Cascade: true}, want: changes{change("bob", "", true)}},
		"leaves with a cascade":                           {held: working, ending: tenancy.Ending{By: "bob", User: "bob", Cascade: true}, want: changes{change("bob", "", true)}},
		"a cascade with nothing to take along":            {held: team, ending: tenancy.Ending{By: "alice", User: "bob", Cascade: true}, want: changes{change("bob", "", true)}},
		"a demotion leaves workspaces alone":              {held: append(slices.Clone(two), in("bob", "w", admin)), ending: tenancy.Ending{By: "alice", User: "bob", Role: member}, want: changes{change("bob", member, false)}},
		"a member is demoted":                             {held: team, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}},
		"beside somebody else's":                          {held: append(slices.Clone(two), in("carol", "", member)), pending: changes{change("carol", "", true)}, ending: tenancy.Ending{By: "alice", User: "bob"}, want: changes{change("carol", "", true), change("bob", "", false)}},
		"the same again":                                  {held: two, pending: changes{change("bob", member, false)}, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}},
		"the same removal again":                          {held: team, pending: changes{change("bob", "", true)}, ending: tenancy.Ending{By: "alice", User: "bob"}},
		"removed while being demoted":                     {held: two, pending: changes{change("bob", member, false)}, ending: tenancy.Ending{By: "alice", User: "bob"}, want: changes{change("bob", "", false)}},
		"leaves while being demoted":                      {held: two, pending: changes{change("bob", member, false)}, ending: tenancy.Ending{By: "bob", User: "bob"}, want: changes{change("bob", "", false)}},
		"demoted while being removed":                     {held: two, pending: changes{change("bob", "", false)}, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}, code: errs.Conflict},
		"a member is demoted while being removed":         {held: team, pending: changes{change("bob", "", false)}, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}, code: errs.Conflict},
		"a member is demoted after their removal is void": {held: team, pending: changes{void("bob", "")}, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}},
		"demoted again after it was void":                 {held: two, pending: changes{void("bob", member)}, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}, want: changes{change("bob", member, false)}},
		"removed again after they were added again":       {held: two, pending: changes{void("bob", "")}, ending: tenancy.Ending{By: "alice", User: "bob"}, want: changes{change("bob", "", false)}},
		"demoted after their removal was void":            {held: two, pending: changes{void("bob", "")}, ending: tenancy.Ending{By: "alice", User: "bob", Role: member}, want: changes{change("bob", member, false)}},
		"what is pending for one who is gone is no harm":  {held: team, pending: changes{change("carol", "", false)}, ending: tenancy.Ending{By: "alice", User: "bob"}, want: changes{change("carol", "", false), change("bob", "", false)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tenancy.NewOrganization("o", "O", "alice")
			o.Spec.MembershipChanges = slices.Clone(c.pending)
			c.ending.At = at
			for i := range c.want {
				if c.want[i].User == c.ending.User {
					c.want[i].By = c.ending.By
				}
			}
			got, err := tenancy.DecideEnding(o, pointers(c.held), c.ending, func(user string) bool { return user != c.inactive }, func(uuid string) string { return "Display of " + uuid })
			require.Equal(t, c.want, got)
			require.Equal(t, c.pending, o.Spec.MembershipChanges, "what memory holds is shared")
			if c.code == 0 {
				require.NoError(t, err)
				return
			}
			var e *errs.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.code, e.Code, e.Message)
			if c.cause == "" {
				require.Empty(t, e.Causes)
				return
			}
			require.Equal(t, c.cause, e.Causes[0].Type)
		})
	}
}

// What was added between two removals by cascade is not carried out after the first.
func TestDecideEnding_aSecondCascadeDropsWhatCameBetween(t *testing.T) {
	t.Parallel()
	o := tenancy.NewOrganization("o", "O", "alice")
	removal := change("bob", "", true)
	removal.By = "alice"
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{removal, {User: "bob", Workspace: "w", Role: member, By: "alice"}}
	held := []v1alpha1.Membership{in("alice", "", admin), in("bob", "", member)}
	again := tenancy.Ending{By: "alice", User: "bob", Cascade: true, At: at}
	active, named := func(string) bool { return true }, func(string) string { return "" }
	got, err := tenancy.DecideEnding(o, pointers(held), again, active, named)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.MembershipChange{removal}, got)
	o.Spec.MembershipChanges = got
	got, err = tenancy.DecideEnding(o, pointers(held), again, active, named)
	require.NoError(t, err)
	require.Nil(t, got, "nothing is left to change")
}

func TestDecideEnding_listsWorkspacesInOrder(t *testing.T) {
	t.Parallel()
	held := []v1alpha1.Membership{in("alice", "", admin), in("bob", "", member), in("bob", "w", member), in("bob", "v", admin), in("carol", "u", member)}
	_, err := tenancy.DecideEnding(tenancy.NewOrganization("o", "O", "alice"), pointers(held), tenancy.Ending{By: "alice", User: "bob"},
		func(string) bool { return true }, func(uuid string) string { return "Display of " + uuid })
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []errs.Cause{
		{Type: tenancy.CauseWorkspaceMembership, Field: "v", Message: "Display of v"},
		{Type: tenancy.CauseWorkspaceMembership, Field: "w", Message: "Display of w"},
	}, e.Causes)
	require.Contains(t, e.Message, "?cascade=true")
}

// A message about the Workspaces alone would suggest a cascade, which cannot help.
func TestDecideEnding_namesSoleAdminFirst(t *testing.T) {
	t.Parallel()
	o := tenancy.NewOrganization("o", "O", "alice")
	anybody, named := func(string) bool { return true }, func(uuid string) string { return "Display of " + uuid }
	held := []v1alpha1.Membership{in("alice", "", admin), in("alice", "w", admin), in("bob", "", member)}
	leaving := tenancy.Ending{By: "alice", User: "alice"}
	_, err := tenancy.DecideEnding(o, pointers(held), leaving, anybody, named)
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []errs.Cause{
		{Type: tenancy.CauseSoleAdmin, Message: e.Message},
		{Type: tenancy.CauseWorkspaceMembership, Field: "w", Message: "Display of w"},
	}, e.Causes)
	require.NotContains(t, e.Message, "cascade")

	held[2] = in("bob", "", admin)
	_, err = tenancy.DecideEnding(o, pointers(held), leaving, anybody, named)
	require.ErrorAs(t, err, &e)
	require.Equal(t, []errs.Cause{{Type: tenancy.CauseWorkspaceMembership, Field: "w", Message: "Display of w"}}, e.Causes)
	require.Contains(t, e.Message, "cascade")
}

func TestChangeApplies_toOneVersionOfAMembership(t *testing.T) {
	t.Parallel()
	m := in("bob", "", admin)
	c := change("bob", member, false)
	require.True(t, tenancy.ChangeApplies(c, &m))
	changed, another := m, m
	changed.Generation++
	another.UID = "of one that was made anew"
	require.False(t, tenancy.ChangeApplies(c, &changed))
	require.False(t, tenancy.ChangeApplies(c, &another))
	require.False(t, tenancy.ChangeApplies(c, nil))

	o := tenancy.NewOrganization("o", "O", "alice")
	_, ok := tenancy.ChangeOf(o, "bob", "")
	require.False(t, ok)
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{change("carol", "", true), c}
	got, ok := tenancy.ChangeOf(o, "bob", "")
	require.True(t, ok)
	require.Equal(t, c, got)
}
