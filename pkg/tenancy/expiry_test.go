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

// noon is the end of Memberships here.
func noon() metav1.Time { return metav1.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC) }

func anybody(string) bool { return true }

func until(m v1alpha1.Membership, end metav1.Time) v1alpha1.Membership {
	m.Spec.ExpiresAt = &end
	return m
}

func TestEnded_isInTheSecondThatIsNamed(t *testing.T) {
	t.Parallel()
	end := noon()
	require.False(t, tenancy.Ended(nil, end.Time))
	require.False(t, tenancy.Ended(&end, end.Add(-time.Nanosecond)))
	require.True(t, tenancy.Ended(&end, end.Time))
}

func TestParseExpiry_isAtLeastAMinuteAhead(t *testing.T) {
	t.Parallel()
	now := noon().Add(-time.Minute)
	for text, want := range map[string]string{
		"2027-01-02T12:00:00Z": "2027-01-02T12:00:00Z", "2027-01-02T13:00:00.9+01:00": "2027-01-02T12:00:00Z",
		"2027-01-02T11:59:59Z": "", "2027-01-02T11:59:59.999Z": "", "2026-01-02T12:00:00Z": "", "": "", "soon": "", "3600": "", "9999-12-31T23:00:00-05:00": "",
	} {
		at, err := tenancy.ParseExpiry("expiresAt", text, now)
		if want == "" {
			require.True(t, errs.Is(err, errs.Unprocessable), "%s: %v", text, err)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, tenancy.ExpiryText(at))
	}
}

func TestScopeAt_isWithoutWhatHasEnded(t *testing.T) {
	t.Parallel()
	const admin, member = v1alpha1.RoleAdmin, v1alpha1.RoleMember
	o := tenancy.NewOrganization("o", "O", "alice")
	was := tenancy.Scope{User: "bob", Workspace: &tenancy.Workspace{UUID: "w"}}
	inOrg, inWorkspace := until(in("bob", "", admin), noon()), in("bob", "w", member)
	at := func(now time.Time) tenancy.Scope { return was.At(o, &inOrg, &inWorkspace, now) }
	require.Equal(t, admin, at(noon().Add(-time.Second)).WorkspaceRole)
	require.Equal(t, member, at(noon().Time).WorkspaceRole)
	require.Empty(t, at(noon().Time).OrgRole)

	mayAdd := func(s tenancy.Scope) error { return s.RequireWorkspaceAdmin("add members") }
	require.Equal(t, noon().Time, was.EndOf(o, &inOrg, &inWorkspace, mayAdd).Time)
	inWorkspace.Spec.Role = admin
	require.Nil(t, was.EndOf(o, &inOrg, &inWorkspace, mayAdd), "the other Membership entitles them further on")
	inWorkspace = until(inWorkspace, metav1.NewTime(noon().Add(time.Hour)))
	require.Equal(t, noon().Add(time.Hour), was.EndOf(o, &inOrg, &inWorkspace, mayAdd).Time)

	soon := noon()
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob", Workspace: "w", UID: inWorkspace.UID, Generation: 1, Role: admin, ExpiresAt: &soon}}
	require.Empty(t, was.At(o, nil, &inWorkspace, noon().Time).WorkspaceRole, "an earlier end counts when it is accepted")
	require.Equal(t, noon().Time, was.EndOf(o, nil, &inWorkspace, mayAdd).Time)
}

// Nobody grants in a Workspace between their removal from everything and its end because their Membership of the
// Organization ended by time in between, or came after their request began.
func TestScopeAt_isEmptyAfterARemovalFromEverything(t *testing.T) {
	t.Parallel()
	inOrg, inWorkspace := until(in("bob", "", v1alpha1.RoleViewer), noon()), in("bob", "w", v1alpha1.RoleAdmin)
	removal := v1alpha1.MembershipChange{User: "bob", UID: inOrg.UID, Generation: inOrg.Generation, Cascade: true}
	demotion := removal
	demotion.Role, demotion.Cascade = v1alpha1.RoleViewer, false
	again := inOrg
	again.UID = "another"
	for name, c := range map[string]struct {
		change v1alpha1.MembershipChange
		inOrg  *v1alpha1.Membership
		after  time.Duration
		want   v1alpha1.Role
	}{
		"before its end":         {removal, &inOrg, -time.Second, ""},
		"after its end":          {removal, &inOrg, time.Second, ""},
		"of a later one":         {removal, nil, 0, ""},
		"of one that came again": {removal, &again, -time.Second, v1alpha1.RoleAdmin},
		"no removal":             {demotion, &inOrg, time.Second, v1alpha1.RoleAdmin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tenancy.NewOrganization("o", "O", "alice")
			o.Spec.MembershipChanges = []v1alpha1.MembershipChange{c.change}
			was := tenancy.Scope{User: "bob", Workspace: &tenancy.Workspace{UUID: "w"}}
			require.Equal(t, c.want, was.At(o, c.inOrg, &inWorkspace, noon().Add(c.after)).WorkspaceRole)
		})
	}
}

// An Organization keeps an admin by hand and without an end, in every way in which it can lose one.
func TestSoleAdmin_isOneWithoutAnEnd(t *testing.T) {
	t.Parallel()
	const admin, member = v1alpha1.RoleAdmin, v1alpha1.RoleMember
	alone := []v1alpha1.Membership{in("alice", "", admin), until(in("bob", "", admin), noon()), in("carol", "", member)}
	two := []v1alpha1.Membership{in("alice", "", admin), in("bob", "", admin), in("carol", "", member)}
	end := noon()
	ends := &tenancy.Expiry{At: &end}
	for name, c := range map[string]struct {
		held    []v1alpha1.Membership
		ending  tenancy.Ending
		pending []v1alpha1.MembershipChange
		refused bool
	}{
		"removal":               {held: alone, ending: tenancy.Ending{By: "bob", User: "alice"}, refused: true},
		"demotion":              {held: alone, ending: tenancy.Ending{By: "bob", User: "alice", Role: member}, refused: true},
		"leaving":               {held: alone, ending: tenancy.Ending{By: "alice", User: "alice"}, refused: true},
		"an end":                {held: alone, ending: tenancy.Ending{By: "bob", User: "alice", Expiry: ends}, refused: true},
		"an end for oneself":    {held: alone, ending: tenancy.Ending{By: "alice", User: "alice", Expiry: ends}, refused: true},
		"demotion and an end":   {held: alone, ending: tenancy.Ending{By: "bob", User: "alice", Role: member, Expiry: ends}, refused: true},
		"the one with an end":   {held: alone, ending: tenancy.Ending{By: "alice", User: "bob"}},
		"another end":           {held: alone, ending: tenancy.Ending{By: "alice", User: "bob", Expiry: &tenancy.Expiry{At: &metav1.Time{Time: end.Add(time.Hour)}}}},
		"a member":              {held: alone, ending: tenancy.Ending{By: "bob", User: "carol", Expiry: ends}},
		"removal, one of two":   {held: two, ending: tenancy.Ending{By: "bob", User: "alice"}},
		"an end, one of two":    {held: two, ending: tenancy.Ending{By: "bob", User: "alice", Expiry: ends}},
		"leaving, one of two":   {held: two, ending: tenancy.Ending{By: "alice", User: "alice"}},
		"the other gets an end": {held: two, ending: tenancy.Ending{By: "bob", User: "alice"}, pending: []v1alpha1.MembershipChange{{User: "bob", UID: "uid of bob", Generation: 1, Role: admin, ExpiresAt: &end}}, refused: true},
		"both get an end":       {held: two, ending: tenancy.Ending{By: "bob", User: "alice", Expiry: ends}, pending: []v1alpha1.MembershipChange{{User: "bob", UID: "uid of bob", Generation: 1, Role: admin, ExpiresAt: &end}}, refused: true},
		"the other is demoted":  {held: two, ending: tenancy.Ending{By: "alice", User: "alice", Expiry: ends}, pending: []v1alpha1.MembershipChange{{User: "bob", UID: "uid of bob", Generation: 1, Role: member}}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tenancy.NewOrganization("o", "O", "alice")
			o.Spec.MembershipChanges = c.pending
			changes, err := tenancy.DecideEnding(o, pointers(c.held), c.ending, anybody, func(string) string { return "" })
			if c.refused {
				require.True(t, errs.Is(err, errs.Conflict), "%v", err)
				require.ErrorContains(t, err, "the only admin")
				return
			}
			require.NoError(t, err)
			require.Len(t, changes, len(c.pending)+1)
		})
	}
}

func TestDecideEdit_ofAnEnd(t *testing.T) {
	t.Parallel()
	const admin, member = v1alpha1.RoleAdmin, v1alpha1.RoleMember
	end, author := noon(), metav1.NewTime(noon().Add(time.Hour))
	o := tenancy.NewOrganization("o", "O", "alice")
	held := until(in("bob", "w", member), end)
	edit := tenancy.MemberEdit{User: "bob", Workspace: "w", By: "alice", Author: tenancy.Standing{Until: &author}}

	edit.Expiry = &tenancy.Expiry{}
	changes, err := tenancy.DecideEdit(o, &held, edit)
	require.NoError(t, err)
	require.Nil(t, changes[0].ExpiresAt)
	require.Equal(t, &author, changes[0].ValidUntil, "an end that is taken off is a grant")

	sooner := metav1.NewTime(end.Add(-time.Hour))
	edit.Expiry = &tenancy.Expiry{At: &sooner}
	changes, err = tenancy.DecideEdit(o, &held, edit)
	require.NoError(t, err)
	require.Equal(t, &sooner, changes[0].ExpiresAt)
	require.Nil(t, changes[0].ValidUntil, "what takes away does not wait for its author")

	edit.Expiry, edit.Role = nil, admin
	changes, err = tenancy.DecideEdit(o, &held, edit)
	require.NoError(t, err)
	require.Equal(t, &end, changes[0].ExpiresAt, "another role leaves the end")

	edit.Add, edit.Role = true, member
	for _, again := range []*tenancy.Expiry{nil, {}, {At: &sooner}} {
		edit.Expiry = again
		_, err = tenancy.DecideEdit(o, &held, edit)
		require.True(t, errs.Is(err, errs.AlreadyExists), "another end: %v", err)
	}
	edit.Expiry = &tenancy.Expiry{At: &end}
	changes, err = tenancy.DecideEdit(o, &held, edit)
	require.NoError(t, err)
	require.Nil(t, changes)
}

func TestVoidChange_isOneOfAnAuthorWhoseRightHasEnded(t *testing.T) {
	t.Parallel()
	end := noon()
	before, after := end.Add(-time.Second), end.Time
	require.False(t, tenancy.VoidChange(v1alpha1.MembershipChange{UID: "u", ValidUntil: &end}, before))
	require.True(t, tenancy.VoidChange(v1alpha1.MembershipChange{UID: "u", ValidUntil: &end}, after))
	require.True(t, tenancy.VoidChange(v1alpha1.MembershipChange{ExpiresAt: &end}, after), "it would create what has ended")
	require.False(t, tenancy.VoidChange(v1alpha1.MembershipChange{UID: "u", ExpiresAt: &end}, after), "it ends what exists")
	require.False(t, tenancy.VoidChange(v1alpha1.MembershipChange{}, after))
}

func TestHeir_isRatherOneWithoutAnEnd(t *testing.T) {
	t.Parallel()
	const admin, member = v1alpha1.RoleAdmin, v1alpha1.RoleMember
	older, younger := until(in("bob", "", admin), noon()), in("carol", "", member)
	younger.CreationTimestamp = noon()
	heir, ok, needed := tenancy.Heir(pointers([]v1alpha1.Membership{in("alice", "", admin), older, younger}), "alice", anybody)
	require.True(t, ok && needed)
	require.Equal(t, "carol", heir.Name)
	heir, ok, needed = tenancy.Heir(pointers([]v1alpha1.Membership{in("alice", "", admin), older}), "alice", anybody)
	require.True(t, ok && needed, "an admin with an end does not count")
	require.Equal(t, "bob", heir.Name)
}
