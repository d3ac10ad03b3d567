package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// inWS is a Membership in a Workspace, as kcp has it.
func inWS(user string, role v1alpha1.Role, manager bool) *v1alpha1.Membership {
	m := tenancy.NewWorkspaceMembership(user, gateWS, role, nil, false)
	m.UID, m.Generation, m.Spec.Manager = types.UID(user), 1, manager
	return m
}

func TestManager_editsNeitherAdminsNorThemselvesAndProlongsNoSudo(t *testing.T) {
	t.Parallel()
	yes, no, roles := true, false, []v1alpha1.RoleRef{{Name: "view"}}
	never, soon, later := &tenancy.Expiry{}, metav1.NewTime(time.Unix(3e9, 0)), metav1.NewTime(time.Unix(4e9, 0))
	until := func(end *metav1.Time, sudo bool, roles ...v1alpha1.RoleRef) *v1alpha1.Membership {
		m := inWS("bob", v1alpha1.RoleMember, false)
		m.Spec.ExpiresAt, m.Spec.Sudo, m.Spec.Roles = end, sudo, roles
		return m
	}
	for name, tc := range map[string]struct {
		edit    tenancy.MemberEdit
		held    *v1alpha1.Membership
		refused bool
	}{
		"adds a viewer":            {tenancy.MemberEdit{Add: true, Role: v1alpha1.RoleViewer}, nil, false},
		"adds a member":            {tenancy.MemberEdit{Add: true, Role: v1alpha1.RoleMember, Sudo: &no, Roles: &[]v1alpha1.RoleRef{}}, nil, false},
		"adds a manager":           {tenancy.MemberEdit{Add: true, Manager: &yes}, nil, false},
		"removes a manager":        {tenancy.MemberEdit{Remove: true}, inWS("bob", "", true), false},
		"makes a member a viewer":  {tenancy.MemberEdit{Role: v1alpha1.RoleViewer}, inWS("bob", v1alpha1.RoleMember, false), false},
		"adds an admin":            {tenancy.MemberEdit{Add: true, Role: v1alpha1.RoleAdmin}, nil, true},
		"makes a member admin":     {tenancy.MemberEdit{Role: v1alpha1.RoleAdmin}, inWS("bob", v1alpha1.RoleMember, false), true},
		"gives sudo":               {tenancy.MemberEdit{Sudo: &yes}, inWS("bob", v1alpha1.RoleMember, false), true},
		"gives further roles":      {tenancy.MemberEdit{Roles: &roles}, inWS("bob", v1alpha1.RoleMember, false), true},
		"removes an admin":         {tenancy.MemberEdit{Remove: true}, inWS("bob", v1alpha1.RoleAdmin, false), true},
		"demotes an admin":         {tenancy.MemberEdit{Role: v1alpha1.RoleViewer}, inWS("bob", v1alpha1.RoleAdmin, false), true},
		"ends an admin":            {tenancy.MemberEdit{Expiry: &tenancy.Expiry{At: &metav1.Time{Time: time.Unix(4e9, 0)}}}, inWS("bob", v1alpha1.RoleAdmin, true), true},
		"prolongs a member":        {tenancy.MemberEdit{Expiry: never}, until(&soon, false), false},
		"prolongs sudo":            {tenancy.MemberEdit{Expiry: &tenancy.Expiry{At: &later}}, until(&soon, true), true},
		"takes the end off sudo":   {tenancy.MemberEdit{Expiry: never}, until(&soon, true), true},
		"prolongs further roles":   {tenancy.MemberEdit{Expiry: never}, until(&soon, false, roles...), true},
		"prolongs without sudo":    {tenancy.MemberEdit{Expiry: never, Sudo: &no}, until(&soon, true), false},
		"shortens sudo":            {tenancy.MemberEdit{Expiry: &tenancy.Expiry{At: &soon}}, until(&later, true), false},
		"gives themselves a role":  {tenancy.MemberEdit{User: "manager", Role: v1alpha1.RoleMember}, inWS("manager", "", true), true},
		"takes away their own end": {tenancy.MemberEdit{User: "manager", Expiry: &tenancy.Expiry{}}, inWS("manager", "", true), true},
	} {
		e := tc.edit
		if e.User == "" {
			e.User = "bob"
		}
		e.Workspace, e.By = gateWS, "manager"
		edit := func() error {
			if e.AsManager {
				if err := e.CheckManager(); err != nil {
					return err
				}
			}
			_, err := tenancy.DecideEdit(tenancy.NewOrganization(gateOrg, "O", "x"), tc.held, e)
			return err
		}
		require.NoError(t, edit(), "%s: an admin may", name)
		e.AsManager = true
		require.Equal(t, tc.refused, errs.Is(edit(), errs.Forbidden), name)
	}
}

// An admin is about to come: the manager must not be the first to change them.
func TestManager_doesNotEditAnAdminWhoIsBeingMade(t *testing.T) {
	t.Parallel()
	o := tenancy.NewOrganization(gateOrg, "O", "x")
	held := inWS("bob", v1alpha1.RoleMember, false)
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob", Workspace: gateWS, UID: held.UID, Generation: 1, Role: v1alpha1.RoleAdmin}}
	e := tenancy.MemberEdit{User: "bob", Workspace: gateWS, By: "manager", AsManager: true, Role: v1alpha1.RoleViewer}
	_, err := tenancy.DecideEdit(o, held, e)
	require.True(t, errs.Is(err, errs.Forbidden))
	o.Spec.MembershipChanges = nil
	_, err = tenancy.DecideEdit(o, held, e)
	require.NoError(t, err)
}

func TestManager_keepsTheFlagBesideARole(t *testing.T) {
	t.Parallel()
	o, yes, no := tenancy.NewOrganization(gateOrg, "O", "x"), true, false
	change := func(held *v1alpha1.Membership, e tenancy.MemberEdit) (v1alpha1.MembershipChange, error) {
		e.User, e.Workspace, e.By = "bob", gateWS, "alice"
		changes, err := tenancy.DecideEdit(o, held, e)
		if err != nil || len(changes) == 0 {
			return v1alpha1.MembershipChange{}, err
		}
		return changes[0], nil
	}
	c, err := change(inWS("bob", "", true), tenancy.MemberEdit{Role: v1alpha1.RoleMember})
	require.NoError(t, err)
	require.Equal(t, []any{v1alpha1.RoleMember, true}, []any{c.Role, c.Manager})
	require.False(t, tenancy.Removes(c))
	made := tenancy.ChangedMembership(inWS("bob", "", true), c)
	require.True(t, tenancy.CarriedOut(made, c))
	c, err = change(inWS("bob", v1alpha1.RoleAdmin, true), tenancy.MemberEdit{NoRole: true})
	require.NoError(t, err)
	require.False(t, tenancy.Removes(c))
	require.Equal(t, []any{v1alpha1.Role(""), true}, []any{c.Role, c.Manager})
	c, err = change(inWS("bob", "", true), tenancy.MemberEdit{Manager: &yes})
	require.NoError(t, err)
	require.Empty(t, c.User, "nothing is to change")
	for field, e := range map[string]tenancy.MemberEdit{
		"role": {Manager: &no}, "sudo": {Sudo: &yes}, "roles": {Roles: &[]v1alpha1.RoleRef{{Name: "view"}}},
	} {
		_, err := change(inWS("bob", "", true), e)
		var refused *errs.Error
		require.ErrorAs(t, err, &refused, field)
		require.Equal(t, field, refused.Causes[0].Field)
	}
	_, err = change(inWS("bob", v1alpha1.RoleMember, false), tenancy.MemberEdit{NoRole: true})
	require.Error(t, err)
}

// A manager is nobody in the Workspace: neither the proxy nor kcp lets them in.
func TestManager_hasNoRightInTheWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.indexes["manager"] = []v1alpha1.MembershipIndexEntry{{OrgUUID: gateOrg, WorkspaceUUID: gateWS, Manager: true}}
	for _, cluster := range []string{clusterID(gateOrg, gateWS), path(gateOrg, gateWS)} {
		entry, err := w.gate(t).Enter("manager", cluster)
		var refused *errs.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []any{errs.Forbidden, tenancy.CauseRoleTooLow}, []any{refused.Code, refused.Causes[0].Type})
		require.Empty(t, entry)
	}
	_, err := w.gate(t).Enter("manager", path(gateOrg, gateWSNew))
	require.Equal(t, func() error { _, err := w.gate(t).Enter("nobody", "nosuchcluster"); return err }(), err, "another Workspace is a stranger's")
	m := inWS("manager", "", true)
	m.Spec.Sudo, m.Spec.Roles = true, []v1alpha1.RoleRef{{Name: "view"}}
	org := tenancy.Org{Organization: tenancy.NewOrganization(gateOrg, "O", "x")}
	user := func(string) (*v1alpha1.User, bool) { return &v1alpha1.User{}, true }
	require.Empty(t, tenancy.Grants(org, gateWS, []*v1alpha1.Membership{m}, user))
	m.Spec.Role = v1alpha1.RoleViewer
	require.Len(t, tenancy.Grants(org, gateWS, []*v1alpha1.Membership{m}, user), 1)
	require.Empty(t, tenancy.BoundRolesOf(inWS("manager", "", true)))
}

func TestManager_managesWhatIsAcceptedForThem(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	s := tenancy.Scope{User: "manager", Workspace: &tenancy.Workspace{UUID: gateWS, OrgUUID: gateOrg}}
	m := inWS("manager", "", true)
	at := func(o *v1alpha1.Organization) tenancy.Scope { return s.At(o, nil, m, now) }
	o := tenancy.NewOrganization(gateOrg, "O", "x")
	require.NoError(t, at(o).RequireWorkspaceManager("x"))
	require.Error(t, at(o).RequireWorkspaceAdmin("x"))
	require.NoError(t, at(o).RequireGrant(v1alpha1.RoleMember, "x"))
	require.Error(t, at(o).RequireGrant(v1alpha1.RoleAdmin, "x"))
	require.Error(t, at(o).RequireContent())
	for name, c := range map[string]v1alpha1.MembershipChange{
		"removed": {}, "made a member": {Role: v1alpha1.RoleMember}, "ended": {Manager: true, ExpiresAt: &metav1.Time{Time: now}},
	} {
		c.User, c.Workspace, c.UID, c.Generation = "manager", gateWS, m.UID, m.Generation
		o := tenancy.NewOrganization(gateOrg, "O", "x")
		o.Spec.MembershipChanges = []v1alpha1.MembershipChange{c}
		require.Error(t, at(o).RequireWorkspaceManager("x"), name)
	}
	s.Workspace = nil
	require.False(t, at(o).Manages(), "a row of a Workspace counts for nothing in the Organization")
}

func TestManager_isHonouredWhereAMembershipSaysSo(t *testing.T) {
	t.Parallel()
	rows := []v1alpha1.MembershipIndexEntry{{OrgUUID: gateOrg, WorkspaceUUID: gateWS, Role: v1alpha1.RoleAdmin, Manager: true}}
	held := inWS("bob", "", true)
	membership := func(_, _ string) (*v1alpha1.Membership, bool) { return held, held != nil }
	got := tenancy.Honoured(rows, membership)
	require.Equal(t, []any{v1alpha1.Role(""), true}, []any{got[0].Role, got[0].Manager})
	require.True(t, tenancy.IsManager(got, gateOrg, gateWS))
	held = inWS("bob", v1alpha1.RoleViewer, false)
	got = tenancy.Honoured(rows, membership)
	require.Equal(t, []any{v1alpha1.RoleViewer, false}, []any{got[0].Role, got[0].Manager})
	rows[0].Role = ""
	require.Empty(t, tenancy.Honoured(rows, membership))
	held = nil
	require.Empty(t, tenancy.Honoured(rows, membership))
	require.False(t, tenancy.IsManager([]v1alpha1.MembershipIndexEntry{{OrgUUID: gateOrg, Manager: true}}, gateOrg, ""), "there are no managers of an Organization")
}

func TestManager_invitesNoAdmins(t *testing.T) {
	t.Parallel()
	for _, role := range v1alpha1.Roles() {
		i := &v1alpha1.Invitation{Spec: v1alpha1.InvitationSpec{Role: role, InvitedBy: v1alpha1.Inviter{Name: "bob", MembershipUID: "bob"}}}
		u := &v1alpha1.User{}
		u.Name = "bob"
		org := tenancy.Org{Organization: tenancy.NewOrganization(gateOrg, "O", "x")}
		_, ok := tenancy.StillInvites(i, u, org, &tenancy.Workspace{UUID: gateWS}, nil, inWS("bob", "", true), time.Unix(1, 0))
		require.Equal(t, role != v1alpha1.RoleAdmin, ok, role)
		_, ok = tenancy.StillInvites(i, u, org, &tenancy.Workspace{UUID: gateWS}, nil, inWS("bob", v1alpha1.RoleAdmin, false), time.Unix(1, 0))
		require.True(t, ok)
		_, ok = tenancy.StillInvites(i, u, org, nil, nil, nil, time.Unix(1, 0))
		require.False(t, ok)
	}
}
