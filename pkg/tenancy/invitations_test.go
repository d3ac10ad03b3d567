package tenancy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

var invitedAt = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// anInvitation is one of an hour.
func anInvitation(name string, status v1alpha1.InvitationStatus) *v1alpha1.Invitation {
	i := &v1alpha1.Invitation{Status: status, Spec: v1alpha1.InvitationSpec{
		Role: v1alpha1.RoleMember, Scope: v1alpha1.ScopeOrg, ExpiresAt: metav1.NewTime(invitedAt.Add(time.Hour)), SecretHash: tenancy.InvitationHash("s"),
		InvitedBy: v1alpha1.Inviter{Name: "alice", MembershipUID: "a"},
	}}
	i.Name = name
	return i
}

func answer(state v1alpha1.InvitationState, by string) v1alpha1.InvitationChange {
	return v1alpha1.InvitationChange{Name: "i", State: state, By: by, RequestedAt: metav1.NewMicroTime(invitedAt)}
}

func TestInvitationState_endsWithItsTime(t *testing.T) {
	t.Parallel()
	i := anInvitation("i", v1alpha1.InvitationStatus{})
	require.Equal(t, v1alpha1.InvitationOpen, tenancy.InvitationStateAt(i, invitedAt.Add(time.Hour-time.Nanosecond)))
	require.Equal(t, v1alpha1.InvitationExpired, tenancy.InvitationStateAt(i, invitedAt.Add(time.Hour)))
	i.Status.State = v1alpha1.InvitationAccepted
	require.Equal(t, v1alpha1.InvitationAccepted, tenancy.InvitationStateAt(i, invitedAt.Add(2*time.Hour)))
}

func TestOpensInvitation_needsTheSecret(t *testing.T) {
	t.Parallel()
	i := anInvitation("i", v1alpha1.InvitationStatus{})
	require.True(t, tenancy.OpensInvitation(i, "s"))
	require.False(t, tenancy.OpensInvitation(i, ""))
	require.False(t, tenancy.OpensInvitation(i, i.Spec.SecretHash))
	require.False(t, tenancy.OpensInvitation(nil, "s"))
}

func TestDecideInvitation_countsWhatIsOpenOrPending(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	var all []v1alpha1.Invitation
	for n := range tenancy.MaxOpenInvitations - 1 {
		all = append(all, *anInvitation(fmt.Sprint(n), v1alpha1.InvitationStatus{}))
	}
	for n := range 50 {
		all = append(all, *anInvitation(fmt.Sprint("ended ", n), v1alpha1.InvitationStatus{State: v1alpha1.InvitationRevoked}))
	}
	spec := anInvitation("i", v1alpha1.InvitationStatus{}).Spec
	c := v1alpha1.InvitationChange{Name: "i", Invitation: &spec}
	changes, err := tenancy.DecideInvitation(o, all, c, invitedAt)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.InvitationChange{c}, changes)

	o.Spec.InvitationChanges = changes
	again, err := tenancy.DecideInvitation(o, all, c, invitedAt)
	require.NoError(t, err)
	require.Nil(t, again, "a lost answer")
	other := spec
	other.SecretHash = tenancy.InvitationHash("another")
	_, err = tenancy.DecideInvitation(o, all, v1alpha1.InvitationChange{Name: "i", Invitation: &other}, invitedAt)
	require.True(t, errs.Is(err, errs.Conflict), "another request with its key: %v", err)
	_, err = tenancy.DecideInvitation(o, all, v1alpha1.InvitationChange{Name: "one more", Invitation: &spec}, invitedAt)
	require.True(t, errs.Is(err, errs.Forbidden), "%v", err)
	_, err = tenancy.DecideInvitation(o, all, v1alpha1.InvitationChange{Name: "later", Invitation: &spec}, invitedAt.Add(time.Hour))
	require.NoError(t, err, "the others have expired")
}

// Invitations that are made and revoked again and again keep nobody else from inviting.
func TestDecideInvitation_nobodyUsesUpTheOrganizations(t *testing.T) {
	t.Parallel()
	var all []v1alpha1.Invitation
	invite := func(by string) error {
		spec := anInvitation("i", v1alpha1.InvitationStatus{}).Spec
		spec.InvitedBy = v1alpha1.Inviter{Name: by, MembershipUID: "another"}
		c := v1alpha1.InvitationChange{Name: "i", Invitation: &spec}
		_, err := tenancy.DecideInvitation(&v1alpha1.Organization{}, all, c, invitedAt)
		return err
	}
	for n := range 500 {
		require.NoError(t, invite("alice"))
		all = append(all, *anInvitation(fmt.Sprint(n), v1alpha1.InvitationStatus{State: v1alpha1.InvitationRevoked}))
	}
	require.True(t, tenancy.IsQuota(invite("alice")))
	require.NoError(t, invite("bob"))
}

func TestDecideAnswer_givesTheInvitationToOne(t *testing.T) {
	t.Parallel()
	decide := func(status v1alpha1.InvitationStatus, pending, c v1alpha1.InvitationChange) ([]v1alpha1.InvitationChange, error) {
		o := &v1alpha1.Organization{}
		if pending.Name != "" {
			o.Spec.InvitationChanges = []v1alpha1.InvitationChange{pending}
		}
		return tenancy.DecideAnswer(o, anInvitation("i", status), c, invitedAt)
	}
	none := v1alpha1.InvitationChange{}
	for state, refused := range map[v1alpha1.InvitationState]bool{
		"": false, v1alpha1.InvitationOpen: false, v1alpha1.InvitationAccepted: true, v1alpha1.InvitationDeclined: true, v1alpha1.InvitationExpired: true,
	} {
		_, err := decide(v1alpha1.InvitationStatus{State: state}, none, answer(v1alpha1.InvitationRevoked, "alice"))
		require.Equal(t, refused, errs.Is(err, errs.Conflict), "%s: %v", state, err)
	}
	_, err := decide(v1alpha1.InvitationStatus{}, answer(v1alpha1.InvitationRevoked, "alice"), answer(v1alpha1.InvitationAccepted, "bob"))
	require.True(t, errs.Is(err, errs.Conflict), "before it is carried out: %v", err)
	changes, err := decide(v1alpha1.InvitationStatus{}, answer(v1alpha1.InvitationRevoked, "alice"), answer(v1alpha1.InvitationRevoked, "carol"))
	require.NoError(t, err)
	require.Nil(t, changes, "it is decided already")

	signUp := v1alpha1.InvitationChange{Name: "i", SignedUp: "eve"}
	changes, err = decide(v1alpha1.InvitationStatus{}, signUp, answer(v1alpha1.InvitationAccepted, "eve"))
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Equal(t, "eve", changes[0].SignedUp, "the sign-up stays recorded")
	for _, status := range []v1alpha1.InvitationStatus{{SignedUp: "eve"}, {}} {
		changes, err = decide(status, signUp, signUp)
		require.NoError(t, err)
		require.Nil(t, changes)
		_, err = decide(status, signUp, v1alpha1.InvitationChange{Name: "i", SignedUp: "trudy"})
		require.True(t, errs.Is(err, errs.Conflict), "a second stranger: %v", err)
	}
	_, err = tenancy.DecideAnswer(&v1alpha1.Organization{}, nil, signUp, invitedAt)
	require.True(t, errs.Is(err, errs.NotFound))
}

// withoutEnd judges an inviter with a right that has no end.
func withoutEnd() (tenancy.Standing, error) { return tenancy.Standing{}, nil }

// An inviter cannot take a place by an invitation of their own that lasts longer than the right to invite.
func TestDecideAcceptance_nobodyProlongsTheirOwnRight(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(invitedAt.Add(time.Hour))
	standing := tenancy.Standing{Until: &end, ByHand: &end}
	judge := func() (tenancy.Standing, error) { return standing, nil }
	place := anInvitation("i", v1alpha1.InvitationStatus{})
	accept := func(by string) ([]v1alpha1.MembershipChange, error) {
		c := answer(v1alpha1.InvitationAccepted, by)
		_, changes, err := tenancy.DecideAcceptance(&v1alpha1.Organization{}, place, nil, c, invitedAt, judge)
		return changes, err
	}
	_, err := accept("alice")
	requireCause(t, err, tenancy.CauseOwnRight)
	changes, err := accept("bob")
	require.NoError(t, err)
	require.Equal(t, &end, changes[0].ValidUntil, "it is carried out while the inviter has the right")
	place.Spec.MembershipExpiresAt = &end
	_, err = accept("alice")
	require.NoError(t, err, "no longer than the right")
	standing.Lent = true
	_, err = accept("alice")
	requireCause(t, err, tenancy.CauseOwnRight)

	refused := errors.New("no right any more")
	_, _, err = tenancy.DecideAcceptance(&v1alpha1.Organization{}, place, nil, answer(v1alpha1.InvitationAccepted, "bob"), invitedAt,
		func() (tenancy.Standing, error) { return tenancy.Standing{}, refused })
	require.ErrorIs(t, err, refused)
}

func TestDecideAcceptance_addsTheMembershipInTheSameWrite(t *testing.T) {
	t.Parallel()
	o, c := &v1alpha1.Organization{}, answer(v1alpha1.InvitationAccepted, "bob")
	answers, changes, err := tenancy.DecideAcceptance(o, anInvitation("i", v1alpha1.InvitationStatus{}), nil, c, invitedAt, withoutEnd)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.InvitationChange{c}, answers)
	require.Equal(t, []v1alpha1.MembershipChange{{User: "bob", Role: v1alpha1.RoleMember, By: "alice", RequestedAt: c.RequestedAt}}, changes)

	o.Spec.InvitationChanges, o.Spec.MembershipChanges = answers, changes
	answers, changes, err = tenancy.DecideAcceptance(o, anInvitation("i", v1alpha1.InvitationStatus{}), nil, c, invitedAt, withoutEnd)
	require.NoError(t, err)
	require.True(t, answers == nil && changes == nil, "a lost answer")
	other := answer(v1alpha1.InvitationAccepted, "carol")
	_, _, err = tenancy.DecideAcceptance(o, anInvitation("i", v1alpha1.InvitationStatus{}), nil, other, invitedAt, withoutEnd)
	require.True(t, errs.Is(err, errs.Conflict), "%v", err)

	held := tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin)
	held.UID = "b"
	_, _, err = tenancy.DecideAcceptance(&v1alpha1.Organization{}, anInvitation("i", v1alpha1.InvitationStatus{}), held, c, invitedAt, withoutEnd)
	require.ErrorContains(t, err, "as admin")
	leaving := &v1alpha1.Organization{}
	leaving.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: "bob", UID: "b"}}
	accepted := anInvitation("i", v1alpha1.InvitationStatus{State: v1alpha1.InvitationAccepted, AcceptedBy: "bob"})
	_, _, err = tenancy.DecideAcceptance(leaving, accepted, held, c, invitedAt, withoutEnd)
	require.ErrorContains(t, err, "accepted already", "it brings nobody back")
}

func TestInvitation_givesAMembershipThatEnds(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(invitedAt.Add(time.Hour / 2))
	i := anInvitation("i", v1alpha1.InvitationStatus{})
	i.Spec.MembershipExpiresAt = &end
	c := answer(v1alpha1.InvitationAccepted, "bob")
	_, changes, err := tenancy.DecideAcceptance(&v1alpha1.Organization{}, i, nil, c, invitedAt, withoutEnd)
	require.NoError(t, err)
	require.Equal(t, &end, changes[0].ExpiresAt)
	_, _, err = tenancy.DecideAcceptance(&v1alpha1.Organization{}, i, nil, c, end.Time, withoutEnd)
	require.ErrorContains(t, err, "has expired", "a membership that has ended already is given to nobody")
	require.Equal(t, v1alpha1.InvitationExpired, tenancy.InvitationStateAt(i, end.Time))
	require.Equal(t, v1alpha1.InvitationOpen, tenancy.InvitationStateAt(i, end.Add(-time.Second)))
}

func TestCheckEmail_takesAnAddressAlone(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": "", "Jane@Example.COM": "jane@example.com", "a+b@x.y": "a+b@x.y"} {
		got, err := tenancy.CheckEmail("email", address)
		require.NoError(t, err, address)
		require.Equal(t, want, got)
	}
	for _, address := range []string{"jane", "Jane <jane@x.y>", "a@b, c@d", "a@b\n", " a@b", "a b@c", "jürgen@x.y", "jane@b\u00fccher.example", "\u212aate@x.y"} {
		_, err := tenancy.CheckEmail("email", address)
		require.True(t, errs.Is(err, errs.Invalid), "%q", address)
	}
}

// U+212A and U+0130 become letters of ASCII in lower case, and other letters only look like them.
func TestNormalEmail_ofAForeignLetterIsThatOfNobody(t *testing.T) {
	t.Parallel()
	require.Equal(t, "kate.i@x.y", tenancy.NormalEmail("Kate.I@X.y"))
	for _, address := range []string{"\u212aate@x.y", "l\u0130sa@x.y", "k\u0430te@x.y", "kate@\u212a.y", "kate@x.y\u200b", "\xffkate@x.y", "\ufffdkate@x.y"} {
		require.Empty(t, tenancy.NormalEmail(address), "%q", address)
	}
}
