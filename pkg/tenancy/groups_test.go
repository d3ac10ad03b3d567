package tenancy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxAge is --group-max-age.
const maxAge = 24 * time.Hour

func hashes(groups ...string) (all []v1alpha1.GroupHash) {
	for _, group := range groups {
		all = append(all, tenancy.HashGroup(group))
	}
	slices.Sort(all)
	return all
}

func TestHeardGroups_newestCredentialCounts(t *testing.T) {
	t.Parallel()
	at := func(after time.Duration) time.Time { return partsNow.Add(after) }
	known := func(after time.Duration, groups ...string) *v1alpha1.UserGroups {
		return &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(at(after)), Hashes: hashes(groups...)}
	}
	for name, c := range map[string]struct {
		held   *v1alpha1.UserGroups
		groups []string
		issued time.Time
		want   *v1alpha1.UserGroups
	}{
		"the first":                          {nil, []string{"b", "a", "a"}, at(-time.Hour), known(-time.Hour, "a", "b")},
		"none, which is worth knowing":       {nil, nil, at(-time.Hour), known(-time.Hour)},
		"a newer one":                        {known(-time.Hour, "a"), []string{"b"}, at(-time.Minute), known(-time.Minute, "b")},
		"an older one gives nothing back":    {known(-time.Hour, "a"), []string{"a", "b"}, at(-2 * time.Hour), nil},
		"another one of the same second":     {known(-time.Hour, "a"), []string{"b"}, at(-time.Hour + 200*time.Millisecond), nil},
		"the same groups, heard of later":    {known(-time.Hour, "a"), []string{"a"}, at(-time.Minute), known(-time.Minute, "a")},
		"from the future":                    {nil, []string{"a"}, at(time.Hour), known(5*time.Minute, "a")},
		"of a provider ahead of kcp":         {nil, []string{"a"}, at(time.Minute), known(time.Minute, "a")},
		"an older one of it":                 {known(time.Minute, "a"), []string{"a", "b"}, at(30 * time.Second), nil},
		"a token file, after one of it":      {known(time.Minute, "a"), []string{"b"}, time.Time{}, known(time.Minute, "b")},
		"a token file without groups":        {nil, nil, time.Time{}, nil},
		"a token file":                       {nil, []string{"a"}, time.Time{}, known(0, "a")},
		"a token file, again":                {known(-time.Hour, "a"), []string{"a"}, time.Time{}, nil},
		"a token file, after a long time":    {known(-4*time.Hour, "a"), []string{"a"}, time.Time{}, known(0, "a")},
		"a token file that was changed":      {known(-time.Hour, "a"), []string{"b"}, time.Time{}, known(0, "b")},
		"a token file that takes all groups": {known(-time.Hour, "a"), nil, time.Time{}, known(0)},
		"and says so no second time":         {known(-9 * time.Hour), nil, time.Time{}, nil},
	} {
		got := tenancy.HeardGroups{Groups: c.groups, IssuedAt: c.issued}.Learn(c.held, partsNow, maxAge)
		if c.want == nil {
			require.Nil(t, got, name)
			continue
		}
		require.NotNil(t, got, name)
		require.Equal(t, c.want.IssuedAt.UTC(), got.IssuedAt.UTC(), name)
		require.ElementsMatch(t, c.want.Hashes, got.Hashes, name)
	}
	require.True(t, tenancy.LosesGroup(known(0, "a", "b"), known(0, "b", "c")))
	require.False(t, tenancy.LosesGroup(known(0, "b"), known(0, "b", "c")))
	require.False(t, tenancy.LosesGroup(nil, known(0)))
}

func TestMapGroup_isOnceForAPlace(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	m := v1alpha1.GroupMapping{ID: "g1", Group: "kedge:dev", Role: v1alpha1.RoleMember}
	var err error
	o.Spec.Groups, _, err = tenancy.MapGroup(o, m)
	require.NoError(t, err)
	m.ID = "g2"
	mappings, same, err := tenancy.MapGroup(o, m)
	require.NoError(t, err)
	require.Len(t, mappings, 1)
	require.Equal(t, "g1", same.ID)
	m.Role = v1alpha1.RoleAdmin
	_, _, err = tenancy.MapGroup(o, m)
	require.True(t, errs.Is(err, errs.AlreadyExists))
	for n := range tenancy.MaxGroupMappings - 1 {
		o.Spec.Groups, _, err = tenancy.MapGroup(o, v1alpha1.GroupMapping{ID: fmt.Sprint(n), Group: fmt.Sprint("kedge:", n), Role: v1alpha1.RoleMember})
		require.NoError(t, err)
	}
	_, _, err = tenancy.MapGroup(o, v1alpha1.GroupMapping{ID: "g1", Group: "kedge:other", Role: v1alpha1.RoleMember})
	require.True(t, errs.Is(err, errs.Conflict), "an Idempotency-Key of another mapping")
	m.Workspace = partWorkspace
	_, _, err = tenancy.MapGroup(o, m)
	require.True(t, errs.Is(err, errs.Forbidden))
	require.Error(t, tenancy.CheckGroup("group", "system:masters"))
	require.Error(t, tenancy.CheckGroup("group", "kedge:dev\n"))
	require.Error(t, tenancy.CheckGroup("group", "kedge:\u202edev"))
	require.Error(t, tenancy.CheckGroup("group", ""))
	require.NoError(t, tenancy.CheckGroup("group", "kedge:dev"))
}

// The mapping is removed while what it gives is accepted and not carried out: nobody gets in by it after the answer.
func TestUnmapGroup_takesWhatIsAcceptedToo(t *testing.T) {
	t.Parallel()
	by := func(id string) v1alpha1.MembershipExtra {
		return v1alpha1.MembershipExtra{Source: tenancy.GroupSource(id), Role: v1alpha1.RoleAdmin}
	}
	o := &v1alpha1.Organization{}
	o.Spec.Groups = []v1alpha1.GroupMapping{{ID: "g1"}, {ID: "g2"}}
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{
		{User: "new", Extra: []v1alpha1.MembershipExtra{by("g1")}},
		{User: "also by another", Extra: []v1alpha1.MembershipExtra{by("g1"), by("g2")}},
		{User: "also by hand", Role: v1alpha1.RoleViewer, Extra: []v1alpha1.MembershipExtra{by("g1")}},
		{User: "prolonged", UID: "u1", Generation: 2, Extra: []v1alpha1.MembershipExtra{by("g1")}},
		{User: "removed", UID: "u2", Generation: 2},
	}
	tenancy.UnmapGroup(o, "g1")
	require.Equal(t, []v1alpha1.GroupMapping{{ID: "g2"}}, o.Spec.Groups)
	require.Equal(t, []v1alpha1.MembershipChange{
		{User: "also by another", Extra: []v1alpha1.MembershipExtra{by("g2")}},
		{User: "also by hand", Role: v1alpha1.RoleViewer, Extra: []v1alpha1.MembershipExtra{}},
		{User: "prolonged", UID: "u1", Generation: 2, Extra: []v1alpha1.MembershipExtra{}},
		{User: "removed", UID: "u2", Generation: 2},
	}, o.Spec.MembershipChanges)
	require.True(t, tenancy.Removes(o.Spec.MembershipChanges[2]), "nothing is left of it")
	was := o.DeepCopy()
	tenancy.UnmapGroup(o, "g1")
	require.Equal(t, was, o, "once")
}

// groupWorld is an Organization that maps kedge:dev as member and, in a Workspace, kedge:ops as admin.
type groupWorld struct {
	tenancy.Grouped
	people map[string]*v1alpha1.User
}

func newGroupWorld(memberships ...*v1alpha1.Membership) *groupWorld {
	w := &groupWorld{people: map[string]*v1alpha1.User{}}
	o := &v1alpha1.Organization{}
	o.Name = partOrg
	o.Spec.Groups = []v1alpha1.GroupMapping{
		{ID: "g1", Group: "kedge:dev", Role: v1alpha1.RoleMember}, {ID: "g2", Group: "kedge:ops", Role: v1alpha1.RoleAdmin, Workspace: partWorkspace},
	}
	w.Grouped = tenancy.Grouped{
		Organization: o, Memberships: memberships, MaxAge: maxAge, Now: partsNow,
		User: func(name string) (*v1alpha1.User, bool) { u, ok := w.people[name]; return u, ok },
		With: func(hash v1alpha1.GroupHash) (with []*v1alpha1.User) {
			for _, u := range w.people {
				for _, h := range u.Spec.Groups.Hashes {
					if h == hash {
						with = append(with, u)
					}
				}
			}
			return with
		},
		Workspace: func(uuid string) bool { return uuid == partWorkspace },
		Places:    func(string) tenancy.Places { return tenancy.Places{All: 3} },
		Full:      func() bool { return false },
	}
	return w
}

func (w *groupWorld) has(issued time.Duration, groups ...string) *v1alpha1.User {
	u := &v1alpha1.User{}
	u.Name, u.Spec.Groups = "bob", &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(partsNow.Add(issued)), Hashes: hashes(groups...)}
	w.people["bob"] = u
	return u
}

func endIn(after time.Duration) *metav1.Time { return &metav1.Time{Time: partsNow.Add(after)} }

func inOrgByGroup(end *metav1.Time) *v1alpha1.Membership {
	m := tenancy.NewMembership("bob", "", "")
	m.UID, m.Generation = "u1", 2
	m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: "group:g1", Role: v1alpha1.RoleMember, ExpiresAt: end}}
	return m
}

func TestGrouped_givesAndTakesWhatTheGroupsSay(t *testing.T) {
	t.Parallel()
	byHand := withParts("member", nil)
	for name, c := range map[string]struct {
		held   []*v1alpha1.Membership
		change func(w *groupWorld)
		// want are the changes: place, role by hand, and parts.
		want []string
	}{
		"let into the organization": {nil, func(w *groupWorld) { w.has(-time.Hour, "kedge:dev") }, []string{"/ [group:g1 member 23h0m0s]"}},
		"beside what is by hand": {[]*v1alpha1.Membership{byHand}, func(w *groupWorld) { w.has(-time.Hour, "kedge:ops") },
			[]string{partWorkspace + "/member [group:g2 admin 23h0m0s]"}},
		"another group":     {nil, func(w *groupWorld) { w.has(0, "kedge:sales") }, nil},
		"not heard of long": {nil, func(w *groupWorld) { w.has(-maxAge, "kedge:dev") }, nil},
		"has it already": {[]*v1alpha1.Membership{inOrgByGroup(endIn(23 * time.Hour))}, func(w *groupWorld) {
			w.has(-time.Hour, "kedge:dev")
		}, nil},
		"an end that is nearly right stays": {[]*v1alpha1.Membership{inOrgByGroup(endIn(22 * time.Hour))}, func(w *groupWorld) {
			w.has(-time.Hour, "kedge:dev")
		}, nil},
		"an old end moves": {[]*v1alpha1.Membership{inOrgByGroup(endIn(2 * time.Hour))}, func(w *groupWorld) { w.has(-time.Hour, "kedge:dev") },
			[]string{"/ [group:g1 member 23h0m0s]"}},
		"an end that is too late comes back": {[]*v1alpha1.Membership{inOrgByGroup(endIn(48 * time.Hour))}, func(w *groupWorld) { w.has(-time.Hour, "kedge:dev") },
			[]string{"/ [group:g1 member 23h0m0s]"}},
		"left the group": {[]*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}, func(w *groupWorld) { w.has(0) }, []string{"/ []"}},
		"the mapping is gone": {[]*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}, func(w *groupWorld) {
			w.has(0, "kedge:dev")
			w.Organization.Spec.Groups = nil
		}, []string{"/ []"}},
		"suspended people keep what groups give": {[]*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}, func(w *groupWorld) {
			w.has(0, "kedge:dev").Spec.Registration = v1alpha1.RegistrationPending
		}, nil},
		"and not for longer than the credential": {[]*v1alpha1.Membership{inOrgByGroup(endIn(48 * time.Hour))}, func(w *groupWorld) {
			w.has(-time.Hour, "kedge:dev").Spec.Registration = v1alpha1.RegistrationPending
		}, []string{"/ [group:g1 member 23h0m0s]"}},
		"and lose what they do not give any more": {[]*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}, func(w *groupWorld) {
			w.has(0).Spec.Registration = v1alpha1.RegistrationRejected
		}, []string{"/ []"}},
		"also with the mapping": {[]*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}, func(w *groupWorld) {
			w.has(0, "kedge:dev").Status.DeletionRequestedAt = endIn(-time.Hour)
			w.Organization.Spec.Groups = nil
		}, []string{"/ []"}},
		"and get nothing": {nil, func(w *groupWorld) { w.has(0, "kedge:dev").Spec.Registration = v1alpha1.RegistrationRejected }, nil},
		"a workspace that does not exist": {nil, func(w *groupWorld) {
			w.has(0, "kedge:ops")
			w.Workspace = func(string) bool { return false }
		}, nil},
		"what is decided by people comes first": {[]*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}, func(w *groupWorld) {
			w.has(0)
			w.Organization.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob", UID: "u1", Generation: 2, Role: v1alpha1.RoleAdmin}}
		}, []string{"/admin []"}},
		"the maker of a workspace stays with the group": {[]*v1alpha1.Membership{inOrgByGroup(endIn(23 * time.Hour)), madeByGroup(endIn(2 * time.Hour))},
			func(w *groupWorld) { w.has(-time.Hour, "kedge:dev") }, []string{partWorkspace + "/ [group:g1 admin 23h0m0s]"}},
		"and goes with it": {[]*v1alpha1.Membership{madeByGroup(endIn(time.Hour))}, func(w *groupWorld) { w.has(0) }, []string{partWorkspace + "/ []"}},
	} {
		w := newGroupWorld(c.held...)
		c.change(w)
		changes, problems, more := w.Decide()
		require.Empty(t, problems, name)
		require.False(t, more, name)
		var got []string
		for _, ch := range changes {
			parts := []string{}
			for _, x := range ch.Extra {
				parts = append(parts, fmt.Sprintf("%s %s %s", x.Source, x.Role, x.ExpiresAt.Sub(partsNow)))
			}
			got = append(got, fmt.Sprintf("%s/%s %s", ch.Workspace, ch.Role, parts))
		}
		require.Equal(t, c.want, got, name)
	}
}

func madeByGroup(end *metav1.Time) *v1alpha1.Membership {
	return withParts("", nil, v1alpha1.MembershipExtra{Source: "group:g1", Role: v1alpha1.RoleAdmin, ExpiresAt: end})
}

// One admin maps a group of very many people, or many groups of one person: neither fills the store, the Memberships of
// somebody, or the condition that says so.
func TestGrouped_boundsWhatOneMappingCanMake(t *testing.T) {
	t.Parallel()
	crowd := func(w *groupWorld, n int) {
		for i := range n {
			u := w.has(0, "kedge:dev")
			u.Name = fmt.Sprintf("p%05d", i)
			w.people[u.Name] = u
		}
		delete(w.people, "bob")
	}
	for name, c := range map[string]struct {
		change  func(*groupWorld)
		problem string
		more    bool
		changes int
	}{
		"a person in too many places": {change: func(w *groupWorld) {
			crowd(w, 20)
			w.Places = func(string) tenancy.Places { return tenancy.Places{ByGroup: tenancy.MaxMemberships / 2} }
		}, problem: "p00000, p00001, p00002, p00003, p00004, 20 in all"},
		"an organization with too many": {change: func(w *groupWorld) {
			crowd(w, 20)
			for n := range tenancy.MaxGroupMembers - 1 {
				m := inOrgByGroup(endIn(maxAge))
				m.Spec.UserRef.Name = fmt.Sprint("gone", n)
				w.Memberships = append(w.Memberships, m)
			}
		}, problem: "at most 5000", changes: 1},
		"a full store": {change: func(w *groupWorld) {
			crowd(w, 20)
			w.Full = func() bool { return true }
		}, more: true},
		"a full store, and what is there": {change: func(w *groupWorld) {
			w.has(0)
			w.Memberships = []*v1alpha1.Membership{inOrgByGroup(endIn(time.Hour))}
			w.Full = func() bool { return true }
		}, changes: 1},
		"many pending changes": {change: func(w *groupWorld) {
			w.has(0, "kedge:dev")
			for n := range 500 {
				pending := v1alpha1.MembershipChange{User: fmt.Sprint("u", n), Role: v1alpha1.RoleMember}
				w.Organization.Spec.MembershipChanges = append(w.Organization.Spec.MembershipChanges, pending)
			}
		}, more: true, changes: 500},
	} {
		w := newGroupWorld()
		c.change(w)
		changes, problems, more := w.Decide()
		require.Len(t, changes, c.changes, name)
		require.Equal(t, c.more, more, name)
		if c.problem == "" {
			require.Empty(t, problems, name)
			continue
		}
		require.Len(t, problems, 1, name)
		require.Contains(t, problems[0], c.problem, name)
	}
}

func TestLetIn_countsWhomTheHubKnows(t *testing.T) {
	t.Parallel()
	w := newGroupWorld()
	bob := w.has(-time.Hour, "kedge:dev")
	require.Equal(t, 1, tenancy.LetIn([]*v1alpha1.User{bob}, partsNow, maxAge))
	require.Zero(t, tenancy.LetIn([]*v1alpha1.User{bob}, partsNow, time.Hour))
}

func TestByGroupAlone_namesTheGroup(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Name, o.Spec.WorkspaceCreation = partOrg, v1alpha1.WhoMembers
	s := tenancy.Scope{User: "bob", Org: tenancy.Org{Organization: o}}
	m := inOrgByGroup(endIn(time.Hour))
	may := func(s tenancy.Scope) error { return s.RequireWorkspaceCreation() }
	require.Equal(t, "group:g1", s.ByGroupAlone(o, m, partsNow, may))
	m.Spec.Role = v1alpha1.RoleMember
	require.Empty(t, s.ByGroupAlone(o, m, partsNow, may), "what is by hand suffices")
	require.Empty(t, s.ByGroupAlone(o, nil, partsNow, may))
	made, err := tenancy.WithCreator(o, tenancy.NewClaim(partWorkspace, "W", "bob", "", metav1.NewTime(partsNow)), endIn(time.Hour), "group:g1")
	require.NoError(t, err)
	require.Empty(t, made[0].Role)
	require.Equal(t, []v1alpha1.MembershipExtra{{Source: "group:g1", Role: v1alpha1.RoleAdmin, ExpiresAt: endIn(time.Hour)}}, made[0].Extra)
}

// A person whose right ends cannot keep it by giving it to themselves.
func TestEdit_nobodyProlongsTheirOwnRight(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	edit := tenancy.MemberEdit{
		User: "bob", By: "bob", Workspace: partWorkspace, Add: true, Role: v1alpha1.RoleAdmin, Author: tenancy.Standing{ByHand: endIn(time.Hour)},
		At: metav1.NewMicroTime(partsNow),
	}
	_, err := tenancy.DecideEdit(o, nil, edit)
	requireCause(t, err, tenancy.CauseOwnRight)
	edit.Expiry = &tenancy.Expiry{At: endIn(time.Hour)}
	_, err = tenancy.DecideEdit(o, nil, edit)
	require.NoError(t, err, "for as long as the right lasts")
	edit.Expiry, edit.By = nil, "alice"
	_, err = tenancy.DecideEdit(o, nil, edit)
	require.NoError(t, err, "another admin may")

	admin := tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)
	admin.Spec.ExpiresAt = endIn(time.Hour)
	other := tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)
	ending := tenancy.Ending{
		User: "bob", By: "bob", Expiry: &tenancy.Expiry{At: endIn(2 * time.Hour)}, Author: tenancy.Standing{ByHand: endIn(time.Hour)},
		At: metav1.NewMicroTime(partsNow),
	}
	active := func(string) bool { return true }
	_, err = tenancy.DecideEnding(o, []*v1alpha1.Membership{admin, other}, ending, active, nil)
	require.True(t, errs.Is(err, errs.Forbidden))
	ending.By = "alice"
	_, err = tenancy.DecideEnding(o, []*v1alpha1.Membership{admin, other}, ending, active, nil)
	require.NoError(t, err)
}
