package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	partOrg       = "11111111-1111-4111-8111-111111111111"
	partWorkspace = "22222222-2222-4222-8222-222222222222"
)

var (
	partsNow  = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	soon      = &metav1.Time{Time: partsNow.Add(time.Hour)}
	later     = &metav1.Time{Time: partsNow.Add(2 * time.Hour)}
	ended     = &metav1.Time{Time: partsNow}
	byRequest = func(role v1alpha1.Role, end *metav1.Time) v1alpha1.MembershipExtra {
		return v1alpha1.MembershipExtra{Source: tenancy.RequestSource("r1"), Role: role, ExpiresAt: end}
	}
	byGroup = v1alpha1.MembershipExtra{Source: "group:g1", Role: v1alpha1.RoleMember}
)

// withParts is a Membership of bob in a Workspace.
func withParts(role v1alpha1.Role, end *metav1.Time, extra ...v1alpha1.MembershipExtra) *v1alpha1.Membership {
	m := tenancy.NewMembership("bob", partWorkspace, role)
	m.UID, m.Generation, m.Spec.ExpiresAt, m.Spec.Extra = "uid", 3, end, extra
	return m
}

func TestEffectiveAt_isTheHighestOfTheLivingParts(t *testing.T) {
	t.Parallel()
	sudo := v1alpha1.MembershipExtra{Source: "request:r2", Sudo: true, ExpiresAt: later}
	for name, c := range map[string]struct {
		m    *v1alpha1.Membership
		role v1alpha1.Role
		sudo bool
		end  *metav1.Time
		// sources are those of the living parts beside that given by hand.
		sources []string
		nothing bool
	}{
		"by hand alone":              {m: withParts("member", later), role: "member", end: later},
		"by hand alone, ended":       {m: withParts("member", ended), nothing: true},
		"raised by a request":        {m: withParts("member", nil, byRequest("admin", soon)), role: "admin", end: soon, sources: []string{"request:r1"}},
		"the request has ended":      {m: withParts("member", nil, byRequest("admin", ended)), role: "member"},
		"a lower role adds nothing":  {m: withParts("admin", soon, byRequest("member", later)), role: "admin", end: soon, sources: []string{"request:r1"}},
		"the later end of one role":  {m: withParts("member", soon, byRequest("member", later)), role: "member", end: later, sources: []string{"request:r1"}},
		"no end lasts longest":       {m: withParts("member", soon, byGroup), role: "member", sources: []string{"group:g1"}},
		"by hand ended, group stays": {m: withParts("admin", ended, byGroup), role: "member", sources: []string{"group:g1"}},
		"nothing by hand":            {m: withParts("", nil, byRequest("viewer", soon)), role: "viewer", end: soon, sources: []string{"request:r1"}},
		"all have ended":             {m: withParts("member", ended, byRequest("admin", ended)), nothing: true},
		"sudo":                       {m: withParts("member", nil, sudo), role: "member", sudo: true, sources: []string{"request:r2"}},
		"sudo alone":                 {m: withParts("", nil, sudo), sudo: true, end: later, sources: []string{"request:r2"}},
	} {
		before := c.m.DeepCopy()
		e := tenancy.EffectiveAt(c.m, partsNow)
		require.Equal(t, before, c.m, name+": it does not change the object")
		if c.nothing {
			require.Nil(t, e, name)
			continue
		}
		require.Equal(t, c.role, e.Spec.Role, name)
		require.Equal(t, c.sudo, e.Spec.Sudo, name)
		require.Equal(t, c.end, e.Spec.ExpiresAt, name)
		var sources []string
		for _, x := range tenancy.ExtrasOf(e) {
			sources = append(sources, x.Source)
		}
		require.Equal(t, c.sources, sources, name)
		require.Equal(t, e, tenancy.EffectiveAt(e, partsNow), name+": again")
		// It can be asked about a later time, too.
		at := soon.Time
		require.Equal(t, tenancy.EffectiveAt(c.m, at), tenancy.EffectiveAt(e, at), name+": later")
	}
}

func TestEffectiveAt_takesManagerAndRolesWithThePartByHand(t *testing.T) {
	t.Parallel()
	m := withParts("member", ended, byRequest("admin", soon))
	m.Spec.Manager, m.Spec.Roles = true, []v1alpha1.RoleRef{{Name: "a"}}
	e := tenancy.EffectiveAt(m, partsNow)
	require.False(t, e.Spec.Manager)
	require.Empty(t, e.Spec.Roles)
	require.False(t, tenancy.ByHand(e))
	require.True(t, tenancy.ByHand(m))
}

func TestWithExpired_removesAPartAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	m := withParts("member", nil, byGroup, byRequest("admin", ended))
	changes := tenancy.WithExpired(o, []*v1alpha1.Membership{m}, partsNow)
	require.Len(t, changes, 1)
	require.Equal(t, v1alpha1.RoleMember, changes[0].Role)
	require.Equal(t, []v1alpha1.MembershipExtra{byGroup}, changes[0].Extra)
	require.False(t, tenancy.Removes(changes[0]))
	require.True(t, tenancy.ReducesMembership(m, changes[0]))
	require.True(t, tenancy.ChangeApplies(changes[0], m))

	m = withParts("member", ended, byRequest("admin", ended))
	changes = tenancy.WithExpired(o, []*v1alpha1.Membership{m}, partsNow)
	require.True(t, tenancy.Removes(changes[0]))
}

func TestScopeAt_countsPartsUntilTheirEnd(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Name = partOrg
	m := withParts("member", nil, byRequest("admin", soon))
	s := tenancy.Scope{User: "bob", Workspace: &tenancy.Workspace{UUID: partWorkspace}}
	admin := func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("test") }
	require.Equal(t, v1alpha1.RoleAdmin, s.At(o, nil, m, partsNow).WorkspaceRole)
	require.Equal(t, v1alpha1.RoleMember, s.At(o, nil, m, soon.Time).WorkspaceRole)
	require.Equal(t, soon, s.EndOf(o, nil, m, admin))
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob", Workspace: partWorkspace, UID: m.UID, Generation: m.Generation, Role: "member"}}
	require.Equal(t, v1alpha1.RoleMember, s.At(o, nil, m, partsNow).WorkspaceRole, "an accepted change that takes the part counts at once")
}

func TestDecideEdit_concernsThePartByHand(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	edit := tenancy.MemberEdit{User: "bob", Workspace: partWorkspace, By: "alice"}
	elevated := withParts("member", nil, byRequest("admin", soon))

	patch := edit
	patch.Role = v1alpha1.RoleViewer
	changes, err := tenancy.DecideEdit(o, elevated, patch)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RoleViewer, changes[0].Role)
	require.Equal(t, elevated.Spec.Extra, changes[0].Extra, "the other parts stay")
	changes, err = tenancy.DecideEdit(o, tenancy.EffectiveAt(elevated, partsNow), patch)
	require.NoError(t, err)
	require.Equal(t, elevated.Spec.Extra, changes[0].Extra)

	onlyGroup := withParts("", nil, byGroup)
	_, err = tenancy.DecideEdit(o, onlyGroup, patch)
	requireCause(t, err, tenancy.CauseNotByHand)
	add := edit
	add.Add, add.Role = true, v1alpha1.RoleViewer
	changes, err = tenancy.DecideEdit(o, onlyGroup, add)
	require.NoError(t, err)
	require.Equal(t, onlyGroup.UID, changes[0].UID, "POST gives a part by hand to the one row")
	require.Equal(t, v1alpha1.RoleViewer, changes[0].Role)
	require.Equal(t, onlyGroup.Spec.Extra, changes[0].Extra)

	remove := edit
	remove.Remove = true
	changes, err = tenancy.DecideEdit(o, elevated, remove)
	require.NoError(t, err)
	require.True(t, tenancy.Removes(changes[0]), "what came by request goes with it")
	_, err = tenancy.DecideEdit(o, withParts("member", nil, byGroup), remove)
	requireCause(t, err, tenancy.CauseGroup)
	remove.Everything = true
	changes, err = tenancy.DecideEdit(o, onlyGroup, remove)
	require.NoError(t, err)
	require.True(t, tenancy.Removes(changes[0]))

	manager := patch
	manager.AsManager = true
	_, err = tenancy.DecideEdit(o, elevated, manager)
	requireCause(t, err, tenancy.CauseRoleTooLow)
}

// Who made a Workspace is not its admin for good because a group let them into the Organization.
func TestDecideEdit_endsWhatAMakerHasByAGroup(t *testing.T) {
	t.Parallel()
	id, _ := tenancy.GroupOf(byGroup.Source)
	o := &v1alpha1.Organization{}
	remove := tenancy.MemberEdit{User: "bob", Workspace: partWorkspace, By: "alice", Remove: true}
	maker := withParts("", nil, byGroup)
	o.Spec.Groups = []v1alpha1.GroupMapping{{ID: id, Group: "kedge:staff", Role: v1alpha1.RoleMember}}
	changes, err := tenancy.DecideEdit(o, maker, remove)
	require.NoError(t, err)
	require.True(t, tenancy.Removes(changes[0]))
	o.Spec.Groups[0].Workspace = partWorkspace
	_, err = tenancy.DecideEdit(o, maker, remove)
	requireCause(t, err, tenancy.CauseGroup)
}

func TestDecideEnding_countsAdminsByHandOnly(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	alice, bob := tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewMembership("bob", "", "")
	bob.Spec.Extra = []v1alpha1.MembershipExtra{{Source: "group:g1", Role: v1alpha1.RoleAdmin}}
	all := tenancy.Living([]*v1alpha1.Membership{alice, bob}, partsNow)
	decide := func(e tenancy.Ending) error {
		_, err := tenancy.DecideEnding(o, all, e, func(string) bool { return true }, func(string) string { return "" })
		return err
	}
	requireCause(t, decide(tenancy.Ending{User: "alice", By: "alice"}), tenancy.CauseSoleAdmin)
	requireCause(t, decide(tenancy.Ending{User: "alice", By: "bob", Role: v1alpha1.RoleMember}), tenancy.CauseSoleAdmin)
	requireCause(t, decide(tenancy.Ending{User: "bob", By: "alice"}), tenancy.CauseGroup)
	requireCause(t, decide(tenancy.Ending{User: "bob", By: "alice", Role: v1alpha1.RoleMember}), tenancy.CauseNotByHand)
	heir, ok, needed := tenancy.Heir(all, "alice", func(string) bool { return true })
	require.True(t, ok && needed)
	require.Equal(t, "bob", heir.Name)
	require.False(t, tenancy.LastingAdmin(heir))
}

func TestGrants_haveSudoOfARequest(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Name = partOrg
	bob := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "bob", Registration: v1alpha1.RegistrationApproved}}
	bob.Name = "bob"
	find := func(string) (*v1alpha1.User, bool) { return bob, true }
	alone := withParts("", nil, v1alpha1.MembershipExtra{Source: "request:r", Sudo: true})
	inOrg := tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)
	for _, order := range [][]*v1alpha1.Membership{{alone, inOrg}, {inOrg, alone}} {
		grants := tenancy.Grants(tenancy.Org{Organization: o}, partWorkspace, tenancy.Living(order, partsNow), find)
		require.Len(t, grants, 1)
		require.Equal(t, v1alpha1.RoleAdmin, grants[0].Role)
		require.True(t, grants[0].Sudo)
	}
	require.Empty(t, tenancy.Grants(tenancy.Org{Organization: o}, partWorkspace, tenancy.Living([]*v1alpha1.Membership{alone}, partsNow), find))
}

func requireCause(t *testing.T, err error, cause string) {
	t.Helper()
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Causes)
	require.Equal(t, cause, e.Causes[0].Type)
}
