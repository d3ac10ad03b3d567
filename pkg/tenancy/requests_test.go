package tenancy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func requestOf(user string, kind v1alpha1.AccessRequestKind) *v1alpha1.AccessRequest {
	r := &v1alpha1.AccessRequest{Spec: v1alpha1.AccessRequestSpec{
		UserRef: v1alpha1.NamedRef{Name: user}, WorkspaceRef: v1alpha1.NamedRef{Name: partWorkspace}, Kind: kind,
		Duration: metav1.Duration{Duration: time.Hour}, Reason: "why",
	}}
	r.Name, r.CreationTimestamp = "r1", metav1.NewTime(partsNow)
	return r
}

func requestDecision(state v1alpha1.AccessRequestState, by string) tenancy.RequestDecision {
	return tenancy.RequestDecision{State: state, By: by, At: metav1.NewMicroTime(partsNow)}
}

func TestCheckRequest_namesTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, lasts, reason, field string }{
		{"sudo", "", "why", ""}, {"admin", "90m", "why", ""}, {"member", "12h", "why", ""},
		{"root", "", "why", "kind"}, {"", "", "why", "kind"}, {"sudo", "59s", "why", "for"}, {"sudo", "12h1s", "why", "for"}, {"sudo", "a day", "why", "for"},
		{"sudo", "", "", "reason"}, {"sudo", "", " ", "reason"}, {"sudo", "", "a\x00b", "reason"}, {"sudo", "", string(make([]rune, 501)), "reason"},
	} {
		_, err := tenancy.CheckRequest(v1alpha1.AccessRequestKind(c.kind), c.lasts, c.reason)
		if c.field == "" {
			require.NoError(t, err)
			continue
		}
		var e *errs.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.field, e.Causes[0].Field)
	}
}

func TestRequestStateAt_lapsesAndEnds(t *testing.T) {
	t.Parallel()
	r := requestOf("bob", v1alpha1.RequestSudo)
	require.Equal(t, v1alpha1.RequestOpen, tenancy.RequestStateAt(r, partsNow.Add(24*time.Hour-time.Second)))
	require.Equal(t, v1alpha1.RequestLapsed, tenancy.RequestStateAt(r, partsNow.Add(24*time.Hour)))
	r.Status = v1alpha1.AccessRequestStatus{State: v1alpha1.RequestApproved, EndsAt: soon}
	require.Equal(t, v1alpha1.RequestApproved, tenancy.RequestStateAt(r, partsNow))
	require.Equal(t, v1alpha1.RequestEnded, tenancy.RequestStateAt(r, soon.Time))
}

func TestDecideRequest_keepsTheQuota(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	var all []v1alpha1.AccessRequest
	for _, name := range []string{"a", "b", "c"} {
		r := requestOf("bob", v1alpha1.RequestSudo)
		r.Name = name
		all = append(all, *r)
	}
	denied := requestOf("bob", v1alpha1.RequestSudo)
	denied.Name, denied.Status.State = "denied", v1alpha1.RequestDenied
	all = append(all, *denied)
	change := func(name, user string) v1alpha1.RequestChange {
		return v1alpha1.RequestChange{Name: name, Request: &requestOf(user, v1alpha1.RequestSudo).Spec, RequestedAt: metav1.NewMicroTime(partsNow)}
	}
	for _, name := range []string{"d", "e"} {
		changes, err := tenancy.DecideRequest(o, all, change(name, "bob"), partsNow)
		require.NoError(t, err)
		o.Spec.RequestChanges = changes
	}
	_, err := tenancy.DecideRequest(o, all, change("f", "bob"), partsNow)
	require.True(t, tenancy.IsQuota(err), err)
	changes, err := tenancy.DecideRequest(o, all, change("e", "bob"), partsNow)
	require.NoError(t, err)
	require.Nil(t, changes, "the first attempt made it")
	_, err = tenancy.DecideRequest(o, all, change("g", "carol"), partsNow)
	require.NoError(t, err, "the quota is of each person")
}

// Requests that are made and withdrawn again and again keep nobody else from asking.
func TestDecideRequest_nobodyUsesUpTheOrganizations(t *testing.T) {
	t.Parallel()
	var all []v1alpha1.AccessRequest
	ask := func(user string) error {
		c := v1alpha1.RequestChange{Name: "r", Request: &requestOf(user, v1alpha1.RequestSudo).Spec, RequestedAt: metav1.NewMicroTime(partsNow)}
		_, err := tenancy.DecideRequest(&v1alpha1.Organization{}, all, c, partsNow)
		return err
	}
	for n := range 200 {
		require.NoError(t, ask("bob"))
		r := requestOf("bob", v1alpha1.RequestSudo)
		r.Name, r.Status.State = fmt.Sprint(n), v1alpha1.RequestWithdrawn
		all = append(all, *r)
	}
	require.True(t, tenancy.IsQuota(ask("bob")))
	require.NoError(t, ask("carol"))
}

// What an approval gives cannot be taken while the Membership that has it is being made: the answer would say that it is
// ended, and the right would come afterwards.
func TestDecideRequestAnswer_endsNothingThatIsStillBeingGiven(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Name = partOrg
	of := tenancy.Requested{Request: requestOf("bob", v1alpha1.RequestMember), InOrg: tenancy.NewMembership("bob", "", v1alpha1.RoleMember)}
	requests, members, err := tenancy.DecideRequestAnswer(o, of, requestDecision(v1alpha1.RequestApproved, "alice"), partsNow)
	require.NoError(t, err)
	o.Spec.RequestChanges, o.Spec.MembershipChanges = requests, members
	for state, by := range map[v1alpha1.AccessRequestState]string{v1alpha1.RequestEnded: "carol", v1alpha1.RequestWithdrawn: "bob"} {
		_, _, err = tenancy.DecideRequestAnswer(o, of, requestDecision(state, by), partsNow)
		require.True(t, errs.Is(err, errs.Conflict), "%s: %v", state, err)
		require.ErrorContains(t, err, "repeat the request afterwards")
	}
	// Carried out, it can be ended.
	o.Spec.MembershipChanges = nil
	of.InWorkspace = tenancy.ChangedMembership(nil, members[0])
	of.InWorkspace.UID = "made"
	requests, members, err = tenancy.DecideRequestAnswer(o, of, requestDecision(v1alpha1.RequestEnded, "carol"), partsNow)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RequestEnded, requests[len(requests)-1].Status.State)
	require.True(t, tenancy.Removes(members[0]))
}

func TestDecideRequestAnswer_givesAPartWithAnEnd(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Name = partOrg
	m := withParts("member", nil, byGroup)
	of := tenancy.Requested{Request: requestOf("bob", v1alpha1.RequestAdmin), InWorkspace: m}
	requests, members, err := tenancy.DecideRequestAnswer(o, of, requestDecision(v1alpha1.RequestApproved, "alice"), partsNow)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.RequestApproved, requests[0].Status.State)
	require.Equal(t, soon.Unix(), requests[0].Status.EndsAt.Unix(), "an hour from the approval on")
	require.Len(t, members, 1)
	given := tenancy.ChangedMembership(m, members[0])
	require.Equal(t, v1alpha1.RoleAdmin, tenancy.EffectiveAt(given, partsNow).Spec.Role)
	require.Equal(t, v1alpha1.RoleMember, tenancy.EffectiveAt(given, soon.Time).Spec.Role)
	require.Len(t, given.Spec.Extra, 2, "what else gives something stays")
	require.Equal(t, "alice", members[0].By)

	// The answer was lost, and the same is decided again.
	o.Spec.RequestChanges, o.Spec.MembershipChanges = requests, members
	requests, members, err = tenancy.DecideRequestAnswer(o, of, requestDecision(v1alpha1.RequestApproved, "alice"), partsNow)
	require.NoError(t, err)
	require.Nil(t, requests)
	require.Nil(t, members)
	_, _, err = tenancy.DecideRequestAnswer(o, of, requestDecision(v1alpha1.RequestDenied, "carol"), partsNow)
	requireCause(t, err, "Approved")

	// Revoked by an admin, or withdrawn by bob: the part goes, and the rest stays.
	o.Spec.RequestChanges, o.Spec.MembershipChanges = nil, nil
	approved := of.Request.DeepCopy()
	approved.Status = v1alpha1.AccessRequestStatus{State: v1alpha1.RequestApproved, DecidedBy: "alice", EndsAt: soon}
	given.Generation++
	for state, by := range map[v1alpha1.AccessRequestState]string{v1alpha1.RequestEnded: "alice", v1alpha1.RequestWithdrawn: "bob"} {
		requests, members, err = tenancy.DecideRequestAnswer(o, tenancy.Requested{Request: approved, InWorkspace: given}, requestDecision(state, by), partsNow)
		require.NoError(t, err)
		require.Equal(t, v1alpha1.RequestEnded, requests[0].Status.State)
		require.Equal(t, []v1alpha1.MembershipExtra{byGroup}, members[0].Extra)
		require.True(t, tenancy.ReducesMembership(given, members[0]))
	}
}

func TestDecideRequestAnswer_refuses(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Name = partOrg
	member := withParts("member", nil)
	sudoer := withParts("member", nil)
	sudoer.Spec.Sudo = true
	with := func(kind v1alpha1.AccessRequestKind, status v1alpha1.AccessRequestStatus) *v1alpha1.AccessRequest {
		r := requestOf("bob", kind)
		r.Status = status
		return r
	}
	for name, c := range map[string]struct {
		of    tenancy.Requested
		d     tenancy.RequestDecision
		at    time.Time
		cause string
	}{
		"one's own":            {tenancy.Requested{Request: requestOf("bob", "admin"), InWorkspace: member}, requestDecision("Approved", "bob"), partsNow, tenancy.CauseOwnRequest},
		"denying one's own":    {tenancy.Requested{Request: requestOf("bob", "admin"), InWorkspace: member}, requestDecision("Denied", "bob"), partsNow, tenancy.CauseOwnRequest},
		"a lapsed one":         {tenancy.Requested{Request: requestOf("bob", "admin"), InWorkspace: member}, requestDecision("Approved", "alice"), partsNow.Add(24 * time.Hour), "Lapsed"},
		"what is there":        {tenancy.Requested{Request: requestOf("bob", "member"), InWorkspace: member}, requestDecision("Approved", "alice"), partsNow, tenancy.CauseHasAlready},
		"sudo that is there":   {tenancy.Requested{Request: requestOf("bob", "sudo"), InWorkspace: sudoer}, requestDecision("Approved", "alice"), partsNow, tenancy.CauseHasAlready},
		"revoking an open one": {tenancy.Requested{Request: requestOf("bob", "admin"), InWorkspace: member}, requestDecision("Ended", "alice"), partsNow, "Open"},
		"withdrawing a denied": {tenancy.Requested{Request: with("admin", v1alpha1.AccessRequestStatus{State: "Denied", DecidedBy: "alice"}), InWorkspace: member}, requestDecision("Withdrawn", "bob"), partsNow, "Denied"},
	} {
		_, _, err := tenancy.DecideRequestAnswer(o, c.of, c.d, c.at)
		var e *errs.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, c.cause, e.Causes[0].Type, name)
	}
	_, _, err := tenancy.DecideRequestAnswer(o, tenancy.Requested{Request: requestOf("bob", "admin")}, requestDecision("Approved", "alice"), partsNow)
	require.True(t, errs.Is(err, errs.Conflict), "bob has left: %v", err)
	_, _, err = tenancy.DecideRequestAnswer(o, tenancy.Requested{}, requestDecision("Approved", "alice"), partsNow)
	require.True(t, errs.Is(err, errs.NotFound))

	// A member of the Organization gets a Membership in the Workspace, which goes with its part.
	inOrg := tenancy.NewMembership("bob", "", v1alpha1.RoleMember)
	_, members, err := tenancy.DecideRequestAnswer(o, tenancy.Requested{Request: requestOf("bob", "member"), InOrg: inOrg}, requestDecision("Approved", "alice"), partsNow)
	require.NoError(t, err)
	require.Empty(t, members[0].UID)
	require.Nil(t, tenancy.EffectiveAt(tenancy.ChangedMembership(nil, members[0]), soon.Time))
}
