package tenancy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// crowd is a groupWorld with many people in kedge:dev, which is mapped in many Workspaces.
type crowd struct {
	*groupWorld
	// lists counts how often the people of a group were listed, and counted how often somebody's Memberships were counted.
	lists, counted int
}

func newCrowd(people, mappings int) *crowd {
	c := &crowd{groupWorld: newGroupWorld()}
	all := make([]*v1alpha1.User, people)
	for i := range all {
		all[i] = c.has(-time.Hour, "kedge:dev")
		all[i].Name = fmt.Sprintf("p%05d", people-1-i)
		c.people[all[i].Name] = all[i]
	}
	delete(c.people, "bob")
	c.Organization.Spec.Groups = nil
	for i := range mappings {
		c.Organization.Spec.Groups = append(c.Organization.Spec.Groups, v1alpha1.GroupMapping{
			ID: fmt.Sprintf("g%02d", i), Group: "kedge:dev", Role: v1alpha1.RoleMember, Workspace: fmt.Sprintf("ws%02d", i),
		})
	}
	c.Workspace = func(string) bool { return true }
	c.With = func(v1alpha1.GroupHash) []*v1alpha1.User {
		c.lists++
		return append([]*v1alpha1.User(nil), all...)
	}
	c.Places = func(string) tenancy.Places {
		c.counted++
		return tenancy.Places{}
	}
	return c
}

// let gives somebody what a mapping of newCrowd gives.
func (c *crowd) let(user string, mapping int, end time.Duration) {
	id := fmt.Sprintf("%02d", mapping)
	m := tenancy.NewMembership(user, "ws"+id, "")
	m.UID, m.Generation = "u1", 2
	m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: "group:g" + id, Role: v1alpha1.RoleMember, ExpiresAt: endIn(end)}}
	c.Memberships = append(c.Memberships, m)
}

// A tenant maps a group of the whole company as often as it can: a pass does not grow with the product of both.
func TestGrouped_passDoesNotGrowWithMappingsTimesPeople(t *testing.T) {
	t.Parallel()
	c := newCrowd(20000, tenancy.MaxGroupMappings)
	changes, problems, more := c.Decide()
	require.Len(t, changes, 500)
	require.Empty(t, problems)
	require.True(t, more)
	require.Equal(t, 1, c.lists, "who has no room is not listed")
	require.Equal(t, 500, c.counted)
	for i, ch := range changes {
		require.Equal(t, fmt.Sprintf("p%05d", i), ch.User, "in the order of names")
		require.Equal(t, "ws00", ch.Workspace)
	}

	// The Organization is full: the next pass lists one group, and counts nobody.
	for i := range tenancy.MaxGroupMembers {
		c.let(fmt.Sprintf("p%05d", i), 0, 23*time.Hour)
	}
	c.lists, c.counted = 0, 0
	changes, problems, more = c.Decide()
	require.Empty(t, changes)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0], "at most 5000")
	require.False(t, more)
	require.Equal(t, 1, c.lists)
	require.Zero(t, c.counted)
}

// Others who are first by name do not displace those who are in.
func TestGrouped_keepsThoseWhoAreIn(t *testing.T) {
	t.Parallel()
	c := newCrowd(20000, 1)
	for i := range tenancy.MaxGroupMembers {
		c.let(fmt.Sprintf("p%05d", 19999-i), 0, 23*time.Hour)
	}
	c.Memberships[0].Spec.Extra[0].ExpiresAt = endIn(time.Hour)
	changes, _, _ := c.Decide()
	require.Len(t, changes, 1)
	require.Equal(t, "p19999", changes[0].User)
	require.Equal(t, endIn(23*time.Hour), changes[0].Extra[0].ExpiresAt)
}

// Somebody maps a group of the victim in all places of their own Organizations. The victim still gets into those of others.
func TestGrouped_placesOfOneMakerStarveNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		places tenancy.Places
		letIn  int
	}{
		"few":                            {tenancy.Places{}, 3},
		"many by the maker":              {tenancy.Places{All: 250, ByGroup: 250, ByMaker: 250}, 0},
		"nearly as many":                 {tenancy.Places{All: 248, ByGroup: 248, ByMaker: 248}, 2},
		"as many by others":              {tenancy.Places{All: 400, ByGroup: 400, ByMaker: 0}, 3},
		"as many by hand":                {tenancy.Places{All: 600}, 3},
		"half of all by groups":          {tenancy.Places{All: 500, ByGroup: 500}, 0},
		"all that a person can have":     {tenancy.Places{All: tenancy.MaxMemberships}, 0},
		"nearly all that they can have":  {tenancy.Places{All: tenancy.MaxMemberships - 1}, 1},
		"nearly half of all, by several": {tenancy.Places{All: 499, ByGroup: 499, ByMaker: 1}, 1},
	} {
		w := newCrowd(1, 3)
		w.Places = func(string) tenancy.Places { return c.places }
		changes, problems, _ := w.Decide()
		require.Len(t, changes, c.letIn, name)
		require.Equal(t, c.letIn < 3, len(problems) == 1, name)

		// What is accepted and not carried out counts, too.
		w.Organization.Spec.MembershipChanges = changes
		again, _, _ := w.Decide()
		require.Equal(t, changes, again, name)
	}
	others := withParts("member", nil)
	mine := inOrgByGroup(endIn(time.Hour))
	places := tenancy.CountPlaces([]*v1alpha1.Membership{others, mine, mine}, func(m *v1alpha1.Membership) bool { return m == mine })
	require.Equal(t, tenancy.Places{All: 3, ByGroup: 2, ByMaker: 2}, places)
}

// A login that says the same as before concerns only those Organizations in which it prolongs something.
func TestChangedGroups_aLoginThatSaysTheSameChangesNone(t *testing.T) {
	t.Parallel()
	person := func(issued time.Duration, groups ...string) *v1alpha1.User {
		return newGroupWorld().has(issued, groups...)
	}
	suspended := person(0, "a", "b")
	suspended.Spec.Registration = v1alpha1.RegistrationRejected
	for name, c := range map[string]struct {
		before, after *v1alpha1.User
		want          []string
	}{
		"the same, later":      {person(-time.Hour, "a", "b"), person(0, "a", "b"), nil},
		"one more":             {person(-time.Hour, "a"), person(0, "a", "b"), []string{"b"}},
		"another one":          {person(-time.Hour, "a", "c"), person(0, "b", "c"), []string{"a", "b"}},
		"the first":            {&v1alpha1.User{}, person(0, "a"), []string{"a"}},
		"forgotten":            {person(-time.Hour, "a"), &v1alpha1.User{}, []string{"a"}},
		"suspended":            {person(0, "a", "b"), suspended, []string{"a", "b", "a", "b"}},
		"not heard of so long": {person(-maxAge, "a"), person(0, "a"), []string{"a", "a"}},
	} {
		require.ElementsMatch(t, hashes(c.want...), tenancy.ChangedGroups(c.before, c.after, partsNow, maxAge), name)
	}
	m, g := inOrgByGroup(endIn(22*time.Hour)), person(-time.Hour, "kedge:dev").Spec.Groups
	require.False(t, tenancy.GroupPartDue(m, g, maxAge), "less than an eighth")
	require.False(t, tenancy.GroupPartDue(m, nil, maxAge))
	m.Spec.Extra[0].ExpiresAt = endIn(20 * time.Hour)
	require.True(t, tenancy.GroupPartDue(m, g, maxAge))
	m.Spec.Extra[0].Source = "request:r"
	require.False(t, tenancy.GroupPartDue(m, g, maxAge))
}

func TestCheckMapper_nobodyProlongsTheirOwnRight(t *testing.T) {
	t.Parallel()
	in, beside := newGroupWorld().has(0, "kedge:dev", "kedge:ops"), newGroupWorld().has(0, "kedge:ops")
	requireCause(t, tenancy.CheckMapper(in, "kedge:dev", endIn(time.Hour)), tenancy.CauseOwnRight)
	require.NoError(t, tenancy.CheckMapper(in, "kedge:dev", nil), "a right without an end")
	require.NoError(t, tenancy.CheckMapper(beside, "kedge:dev", endIn(time.Hour)))
	require.NoError(t, tenancy.CheckMapper(&v1alpha1.User{}, "kedge:dev", endIn(time.Hour)), "never heard of")
}
