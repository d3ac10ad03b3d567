package tenancy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// rich returns bob's Membership of the Workspace w with sudo and a further role.
func rich(role v1alpha1.Role) *v1alpha1.Membership {
	m := in("bob", "w", role)
	m.Spec.Sudo, m.Spec.Roles = true, []v1alpha1.RoleRef{{Name: "view"}}
	return &m
}

// edited returns a change of bob's Membership of the Workspace w, by alice.
func edited(role v1alpha1.Role, sudo bool, roles ...v1alpha1.RoleRef) v1alpha1.MembershipChange {
	return v1alpha1.MembershipChange{
		User: "bob", Workspace: "w", UID: "uid of w.bob", Generation: 1, Role: role, Sudo: sudo, Roles: roles, By: "alice", RequestedAt: at,
	}
}

// created is edited for a Membership that does not exist.
func created(role v1alpha1.Role, sudo bool, roles ...v1alpha1.RoleRef) v1alpha1.MembershipChange {
	c := edited(role, sudo, roles...)
	c.UID, c.Generation = "", 0
	return c
}

func TestDecideEdit_changesWhatKCPHas(t *testing.T) {
	t.Parallel()
	view := v1alpha1.RoleRef{Name: "view"}
	type changes = []v1alpha1.MembershipChange
	for name, c := range map[string]struct {
		held    *v1alpha1.Membership
		pending changes
		edit    tenancy.MemberEdit
		want    changes
		code    errs.Code
	}{
		"added":                             {edit: tenancy.MemberEdit{Add: true, Role: member}, want: changes{created(member, false)}},
		"added with more":                   {edit: tenancy.MemberEdit{Add: true, Role: member, Sudo: ptr.To(true), Roles: &[]v1alpha1.RoleRef{view}}, want: changes{created(member, true, view)}},
		"added again":                       {held: rich(member), edit: tenancy.MemberEdit{Add: true, Role: member, Sudo: ptr.To(true), Roles: &[]v1alpha1.RoleRef{view}}},
		"added as something else":           {held: rich(member), edit: tenancy.MemberEdit{Add: true, Role: admin}, code: errs.AlreadyExists},
		"added while the same is":           {pending: changes{created(member, false)}, edit: tenancy.MemberEdit{Add: true, Role: member}},
		"added while another is":            {pending: changes{created(admin, false)}, edit: tenancy.MemberEdit{Add: true, Role: member}, code: errs.AlreadyExists},
		"added while being removed":         {held: rich(member), pending: changes{edited("", false)}, edit: tenancy.MemberEdit{Add: true, Role: member}, code: errs.Conflict},
		"promoted":                          {held: rich(member), edit: tenancy.MemberEdit{Role: admin}, want: changes{edited(admin, true, view)}},
		"demoted":                           {held: rich(admin), edit: tenancy.MemberEdit{Role: member}, want: changes{edited(member, false)}},
		"demoted, sudo kept":                {held: rich(admin), edit: tenancy.MemberEdit{Role: member, Sudo: ptr.To(true)}, want: changes{edited(member, true)}},
		"demoted, roles kept":               {held: rich(admin), edit: tenancy.MemberEdit{Role: member, Roles: &[]v1alpha1.RoleRef{view}}, want: changes{edited(member, false, view)}},
		"as they are":                       {held: rich(member), edit: tenancy.MemberEdit{Role: member}},
		"sudo taken":                        {held: rich(member), edit: tenancy.MemberEdit{Sudo: ptr.To(false)}, want: changes{edited(member, false, view)}},
		"roles taken":                       {held: rich(member), edit: tenancy.MemberEdit{Roles: &[]v1alpha1.RoleRef{}}, want: changes{edited(member, true)}},
		"demoted after a pending promotion": {held: rich(member), pending: changes{edited(admin, true, view)}, edit: tenancy.MemberEdit{Role: member}, want: changes{edited(member, false)}},
		"the pending promotion again":       {held: rich(member), pending: changes{edited(admin, true, view)}, edit: tenancy.MemberEdit{Role: admin}},
		"changed while being added":         {pending: changes{created(member, false)}, edit: tenancy.MemberEdit{Role: admin}, code: errs.Conflict},
		"changed while being removed":       {held: rich(member), pending: changes{edited("", false)}, edit: tenancy.MemberEdit{Role: admin}, code: errs.Conflict},
		"nobody is changed":                 {edit: tenancy.MemberEdit{Role: admin}, code: errs.NotFound},
		"removed":                           {held: rich(member), edit: tenancy.MemberEdit{Remove: true}, want: changes{edited("", false)}},
		"removed while being promoted":      {held: rich(member), pending: changes{edited(admin, true, view)}, edit: tenancy.MemberEdit{Remove: true}, want: changes{edited("", false)}},
		"removed again":                     {held: rich(member), pending: changes{edited("", false)}, edit: tenancy.MemberEdit{Remove: true}},
		"nobody is removed":                 {edit: tenancy.MemberEdit{Remove: true}, code: errs.NotFound},
		"beside the one of the Organization": {
			held: rich(member), pending: changes{change("bob", "", false)}, edit: tenancy.MemberEdit{Remove: true}, want: changes{change("bob", "", false), edited("", false)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tenancy.NewOrganization("o", "O", "alice")
			o.Spec.MembershipChanges = c.pending
			c.edit.User, c.edit.Workspace, c.edit.By, c.edit.At = "bob", "w", "alice", at
			got, err := tenancy.DecideEdit(o, c.held, c.edit)
			require.Len(t, got, len(c.want))
			for i := range c.want {
				if len(c.want[i].Roles) == 0 {
					c.want[i].Roles, got[i].Roles = nil, nil
				}
			}
			require.Equal(t, c.want, got)
			if c.code != 0 {
				require.True(t, errs.Is(err, c.code), "%v", err)
				return
			}
			require.NoError(t, err)
		})
	}
}

// However many grants are pending, there is room for what takes rights away.
func TestDecideEdit_keepsRoomForEndings(t *testing.T) {
	t.Parallel()
	o := tenancy.NewOrganization("o", "O", "alice")
	for i := range 500 {
		o.Spec.MembershipChanges = append(o.Spec.MembershipChanges, v1alpha1.MembershipChange{User: fmt.Sprint("u", i), Role: member})
	}
	edit := tenancy.MemberEdit{User: "bob", Workspace: "w", By: "alice", At: at}
	add, promote, demote, remove := edit, edit, edit, edit
	add.Add, add.Role, promote.Role, demote.Role, remove.Remove = true, member, admin, member, true
	_, err := tenancy.DecideEdit(o, nil, add)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	_, err = tenancy.WithCreator(o, tenancy.NewClaim("w", "W", "bob", "", metav1.NewTime(at.Time)), nil, "")
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	_, err = tenancy.DecideEdit(o, rich(member), promote)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	for _, e := range []tenancy.MemberEdit{demote, remove} {
		changes, err := tenancy.DecideEdit(o, rich(admin), e)
		require.NoError(t, err)
		require.Len(t, changes, 501)
	}
	o.Spec.MembershipChanges = o.Spec.MembershipChanges[1:]
	_, err = tenancy.DecideEdit(o, nil, add)
	require.NoError(t, err, "the control")
}

// A right that was taken away counts from the moment that the Organization accepted it.
func TestAt_countsWhatWasAcceptedBeforeItIsCarriedOut(t *testing.T) {
	t.Parallel()
	type changes = []v1alpha1.MembershipChange
	inOrg := func(role v1alpha1.Role) *v1alpha1.Membership { m := in("bob", "", role); return &m }
	inW := func(role v1alpha1.Role) *v1alpha1.Membership { m := in("bob", "w", role); return &m }
	lowered := change("bob", member, false)
	for name, c := range map[string]struct {
		org, ws           *v1alpha1.Membership
		pending           changes
		wantOrg, wantInWs v1alpha1.Role
	}{
		"nothing":                        {},
		"an admin of the Organization":   {org: inOrg(admin), wantOrg: admin, wantInWs: admin},
		"a member with a Workspace":      {org: inOrg(member), ws: inW(admin), wantOrg: member, wantInWs: admin},
		"being removed":                  {org: inOrg(admin), pending: changes{change("bob", "", false)}},
		"being removed from all":         {org: inOrg(admin), ws: inW(admin), pending: changes{change("bob", "", true)}},
		"being removed, still a guest":   {org: inOrg(admin), ws: inW(member), pending: changes{change("bob", "", false)}, wantInWs: member},
		"being demoted":                  {org: inOrg(admin), pending: changes{lowered}, wantOrg: member},
		"being removed from a Workspace": {org: inOrg(member), ws: inW(admin), pending: changes{edited("", false)}, wantOrg: member},
		"being promoted, not yet":        {org: inOrg(member), pending: changes{change("bob", admin, false)}, wantOrg: member},
		"a removal that is void":         {org: inOrg(admin), pending: changes{void("bob", "")}, wantOrg: admin, wantInWs: admin},
		"somebody else is removed":       {org: inOrg(admin), pending: changes{change("carol", "", true)}, wantOrg: admin, wantInWs: admin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tenancy.NewOrganization("o", "O", "alice")
			o.Spec.MembershipChanges = c.pending
			was := tenancy.Scope{User: "bob", OrgRole: admin, WorkspaceRole: admin, Workspace: &tenancy.Workspace{UUID: "w"}}
			now := was.At(o, c.org, c.ws, time.Unix(0, 0))
			require.Equal(t, c.wantOrg, now.OrgRole)
			require.Equal(t, c.wantInWs, now.WorkspaceRole)
			require.Equal(t, admin, was.OrgRole, "the scope of the request stays")
		})
	}
}

func TestDecideBot_ordersGrants(t *testing.T) {
	t.Parallel()
	held := tenancy.NewBot("b", "w", "CI", member, "alice", "")
	held.UID = "uid"
	gone := held.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: at.Time}
	other := held.DeepCopy()
	other.UID = "another"
	made := v1alpha1.BotChange{Name: "b", Workspace: "w", Role: member, DisplayName: "CI", By: "alice", RequestedAt: at}
	raise := v1alpha1.BotChange{Name: "b", Workspace: "w", UID: "uid", Role: admin, By: "alice", RequestedAt: at}
	raised := raise
	raised.From = member
	for name, c := range map[string]struct {
		held    *v1alpha1.Bot
		pending []v1alpha1.BotChange
		change  v1alpha1.BotChange
		want    []v1alpha1.BotChange
		code    errs.Code
	}{
		"made":                       {change: made, want: []v1alpha1.BotChange{made}},
		"made, repeated":             {pending: []v1alpha1.BotChange{made}, change: made},
		"made, and there":            {held: held, change: made},
		"made, and being deleted":    {held: gone, change: made, code: errs.Conflict},
		"raised":                     {held: held, change: raise, want: []v1alpha1.BotChange{raised}},
		"raised, repeated":           {held: held, pending: []v1alpha1.BotChange{raised}, change: raise},
		"raised, and gone":           {change: raise, code: errs.NotFound},
		"raised, and being deleted":  {held: gone, change: raise, code: errs.NotFound},
		"raised, and another's name": {held: other, change: raise, code: errs.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tenancy.NewOrganization("o", "O", "alice")
			o.Spec.BotChanges = c.pending
			got, err := tenancy.DecideBot(o, c.held, c.change)
			require.Equal(t, c.want, got)
			if c.code != 0 {
				require.True(t, errs.Is(err, c.code), "%v", err)
				return
			}
			require.NoError(t, err)
		})
	}
	lowered := held.DeepCopy()
	lowered.Spec.Role = admin
	require.False(t, tenancy.BotChangeApplies(raised, lowered), "the role is another one since")
	require.True(t, tenancy.BotChangeApplies(raised, held))
}

// The hub is killed after it raised the role and before it recorded that, and the role is lowered
// before the next hub looks at the raise.
func TestDecideBot_aRaiseIsNotCarriedOutOverALowering(t *testing.T) {
	t.Parallel()
	bot := tenancy.NewBot("b", "w", "deploy", v1alpha1.RoleMember, "alice", "")
	bot.UID = "1"
	o := tenancy.NewOrganization("o", "O", "alice")
	raise := v1alpha1.BotChange{Name: "b", UID: "1", Role: v1alpha1.RoleAdmin, By: "alice"}
	changes, err := tenancy.DecideBot(o, bot, raise)
	require.NoError(t, err)
	require.True(t, tenancy.BotChangeApplies(changes[0], bot))
	bot = tenancy.ChangedBot(bot, changes[0])
	tenancy.SetBotRole(bot, v1alpha1.RoleMember)
	require.False(t, tenancy.BotChangeApplies(changes[0], bot))
	// The control: a raise that is asked for after the lowering.
	changes, err = tenancy.DecideBot(o, bot, raise)
	require.NoError(t, err)
	require.True(t, tenancy.BotChangeApplies(changes[0], bot))
}

func TestCheckMemberships_endsAtAThousand(t *testing.T) {
	t.Parallel()
	rows := make([]v1alpha1.MembershipIndexEntry, tenancy.MaxMemberships)
	require.NoError(t, tenancy.CheckMemberships("bob", rows[1:]))
	err := tenancy.CheckMemberships("bob", rows)
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, errs.Conflict, e.Code)
	require.Equal(t, tenancy.CauseTooManyMemberships, e.Causes[0].Type)
}

// A Workspace that was claimed before its maker was removed stays the Organization's.
func TestWithCreator_isVoidAfterTheRemoval(t *testing.T) {
	t.Parallel()
	claim := tenancy.NewClaim("w", "W", "bob", "", metav1.NewTime(at.Time))
	claim.Request.RequestedAt = metav1.NewTime(at.Time)
	o := tenancy.NewOrganization("o", "O", "alice")
	made, err := tenancy.WithCreator(o, claim, nil, "")
	require.NoError(t, err)
	o.Spec.MembershipChanges = made
	require.Equal(t, []v1alpha1.MembershipChange{{User: "bob", Workspace: "w", Role: admin, By: "bob", RequestedAt: at}}, o.Spec.MembershipChanges)
	team := []v1alpha1.Membership{in("alice", "", admin), in("bob", "", member)}
	leaving := tenancy.Ending{By: "alice", User: "bob", At: at}
	anybody, named := func(string) bool { return true }, func(string) string { return "W" }
	_, err = tenancy.DecideEnding(o, pointers(team), leaving, anybody, named)
	require.True(t, errs.Is(err, errs.Conflict), "bob is about to be in that Workspace: %v", err)
	leaving.Cascade = true
	changes, err := tenancy.DecideEnding(o, pointers(team), leaving, anybody, named)
	require.NoError(t, err)
	require.Len(t, changes, 1, "what was to come is dropped with what they have")
	require.Equal(t, types.UID("uid of bob"), changes[0].UID)
	require.Len(t, o.Spec.MembershipChanges, 1, "what memory holds is shared")
}
