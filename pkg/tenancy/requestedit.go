package tenancy

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// MaxOpenRequests is the number of open AccessRequests that a person can have in an Organization.
	MaxOpenRequests = 5
	// maxRequests is the number of all that an Organization can have, those that ended lately included, and
	// maxRequestsOfOne the number of those of one person: nobody uses up what all have.
	maxRequests, maxRequestsOfOne = 2000, 200
	// maxPendingRequests is the number of pending changes of AccessRequests above which an Organization accepts
	// no new one. The schema permits 500, so there is room for decisions.
	maxPendingRequests = 250
	// maxExtra is the number of parts of a Membership that the schema permits.
	maxExtra = 64
)

// RequestChangeOf returns the pending change of the AccessRequest of that name.
func RequestChangeOf(o *v1alpha1.Organization, name string) (v1alpha1.RequestChange, bool) {
	return first(o.Spec.RequestChanges, func(c v1alpha1.RequestChange) bool { return c.Name == name })
}

// SameRequestChange reports whether two changes are from one decision.
func SameRequestChange(a, b v1alpha1.RequestChange) bool {
	return a.Name == b.Name && a.RequestedAt.Equal(&b.RequestedAt)
}

// DecideRequest returns spec.requestChanges of the Organization with a new AccessRequest, or nil if an earlier
// attempt made it. all are the AccessRequests in kcp, listed after o was read, so that concurrent requests cannot
// exceed the quota.
func DecideRequest(o *v1alpha1.Organization, all []v1alpha1.AccessRequest, c v1alpha1.RequestChange, now time.Time) ([]v1alpha1.RequestChange, error) {
	open, own, there := 0, 0, map[string]v1alpha1.AccessRequestSpec{}
	for i := range all {
		there[all[i].Name] = all[i].Spec
		if all[i].Spec.UserRef == c.Request.UserRef {
			own++
			if RequestStateAt(&all[i], now) == v1alpha1.RequestOpen {
				open++
			}
		}
	}
	for _, pending := range o.Spec.RequestChanges {
		if _, made := there[pending.Name]; pending.Request != nil && !made {
			there[pending.Name] = *pending.Request
			if pending.Request.UserRef == c.Request.UserRef {
				open, own = open+1, own+1
			}
		}
	}
	if made, ok := there[c.Name]; ok && made == *c.Request {
		return nil, nil
	} else if ok {
		return nil, errs.New(errs.Conflict, "another request was made with this Idempotency-Key")
	}
	if err := checkQuota(MaxOpenRequests, open, "you have %d of at most %d open requests in this organization; withdraw one, or wait for a decision"); err != nil {
		return nil, err
	}
	const rest = " of at most %d requests, those that ended lately included; wait until the hub has removed some"
	err := cmp.Or(checkQuota(maxRequestsOfOne, own, "you made %d"+rest), checkQuota(maxRequests, len(there), "this organization has %d"+rest))
	if err != nil {
		return nil, err
	}
	if len(o.Spec.RequestChanges) >= maxPendingRequests {
		return nil, tooManyPending()
	}
	return append(slices.Clone(o.Spec.RequestChanges), c), nil
}

// RequestDecision is a decision about an AccessRequest: Approved or Denied, Withdrawn by the person who asks, or Ended
// by an admin who revokes what it gave.
type RequestDecision struct {
	State    v1alpha1.AccessRequestState
	By, Note string
	At       metav1.MicroTime
	// ValidUntil is the end of the rights of the User in By, or nil.
	ValidUntil *metav1.Time
}

// Requested are an AccessRequest in kcp, or nil, and the Memberships of the person who asks, or nil, read after the
// Organization was.
type Requested struct {
	Request            *v1alpha1.AccessRequest
	InOrg, InWorkspace *v1alpha1.Membership
}

// DecideRequestAnswer returns spec.requestChanges and spec.membershipChanges of the Organization with a decision, so
// that the decision and what it gives or takes are one write. The first are nil if the same was decided before, and
// the second if no Membership changes.
func DecideRequestAnswer(o *v1alpha1.Organization, of Requested, d RequestDecision, now time.Time) ([]v1alpha1.RequestChange, []v1alpha1.MembershipChange, error) {
	r := of.Request
	if r == nil || !r.DeletionTimestamp.IsZero() {
		return nil, nil, NoSuchRequest()
	}
	before := r.DeepCopy()
	if pending, ok := RequestChangeOf(o, r.Name); ok && pending.Status != nil {
		before.Status = *pending.Status
	}
	status := v1alpha1.AccessRequestStatus{State: d.State, DecidedBy: d.By, Note: d.Note}
	state, own := RequestStateAt(before, now), d.By == r.Spec.UserRef.Name
	gives, takes := d.State == v1alpha1.RequestApproved, d.State == v1alpha1.RequestEnded
	switch d.State {
	case v1alpha1.RequestApproved:
		status.EndsAt = &metav1.Time{Time: d.At.Add(r.Spec.Duration.Duration).UTC().Truncate(time.Second)}
	case v1alpha1.RequestWithdrawn:
		if before.Status.State == v1alpha1.RequestApproved || before.Status.State == v1alpha1.RequestEnded {
			takes, status.State = true, v1alpha1.RequestEnded
		}
	}
	if takes {
		status.EndsAt = before.Status.EndsAt
	}
	switch wanted := map[bool]v1alpha1.AccessRequestState{true: v1alpha1.RequestApproved, false: v1alpha1.RequestOpen}[takes]; {
	case equalStatus(before.Status, status):
		// The answer to the first attempt was lost.
		return nil, nil, nil
	case own && d.State != v1alpha1.RequestWithdrawn && !takes:
		message := "nobody decides about a request of their own; ask another admin of the workspace"
		return nil, nil, errs.New(errs.Forbidden, message, errs.Cause{Type: CauseOwnRequest, Message: message})
	case state != wanted:
		return nil, nil, RequestNotOpen(state)
	}
	changes := slices.DeleteFunc(slices.Clone(o.Spec.RequestChanges), func(c v1alpha1.RequestChange) bool { return c.Name == r.Name })
	changes = append(changes, v1alpha1.RequestChange{Name: r.Name, Status: &status, RequestedAt: d.At})
	switch {
	case gives:
		members, err := of.give(o, partOf(r, status.EndsAt), d, now)
		return changes, members, err
	case takes:
		members, err := of.take(o, d, now)
		return changes, members, err
	}
	return changes, nil, nil
}

// settled refuses a change of the Membership in the Workspace while another one is pending, also the one that makes it:
// who decided that did not see this one, and it would be carried out after it.
func (of Requested) settled(o *v1alpha1.Organization) error {
	user := of.Request.Spec.UserRef.Name
	if pending, ok := ChangeOf(o, user, of.Request.Spec.WorkspaceRef.Name); ok && ChangeApplies(pending, of.InWorkspace) {
		return errs.New(errs.Conflict, "the membership of "+user+" is being changed at the moment; repeat the request afterwards")
	}
	return nil
}

// change returns the change of the Membership in the Workspace, as that is before it.
func (of Requested) change(d RequestDecision, now time.Time) (c v1alpha1.MembershipChange, err error) {
	user, workspace := of.Request.Spec.UserRef.Name, of.Request.Spec.WorkspaceRef.Name
	if m := of.InWorkspace; m != nil {
		e := EffectiveAt(m, now)
		if e == nil {
			return c, errs.New(errs.Conflict, "the membership of "+user+" has ended and is being removed at the moment; repeat the request afterwards")
		}
		c = given(e)
		c.UID, c.Generation = m.UID, m.Generation
	}
	c.User, c.Workspace, c.By, c.RequestedAt = user, workspace, d.By, d.At
	return c, nil
}

func (of Requested) give(o *v1alpha1.Organization, part v1alpha1.MembershipExtra, d RequestDecision, now time.Time) ([]v1alpha1.MembershipChange, error) {
	user := of.Request.Spec.UserRef.Name
	s := Scope{User: user, Workspace: &Workspace{UUID: of.Request.Spec.WorkspaceRef.Name}}.At(o, of.InOrg, of.InWorkspace, now)
	switch {
	case s.OrgRole == "" && s.WorkspaceRole == "" && !s.WorkspaceManager:
		return nil, errs.New(errs.Conflict, "user "+user+" is not in this organization any more")
	case Has(of.Request.Spec.Kind, s, of.InWorkspace, now):
		return nil, HasAlready(of.Request.Spec.Kind)
	}
	if err := of.settled(o); err != nil {
		return nil, err
	}
	c, err := of.change(d, now)
	switch {
	case err != nil:
		return nil, err
	case len(o.Spec.MembershipChanges) >= maxPendingGrants:
		return nil, tooManyPending()
	case len(c.Extra) >= maxExtra:
		return nil, errs.New(errs.Conflict, "the membership of "+user+" has too many parts; revoke some")
	}
	c.Extra, c.ValidUntil = append(slices.Clone(c.Extra), part), d.ValidUntil
	return append(without(o.Spec.MembershipChanges, c.User, c.Workspace), c), nil
}

// take returns nil if the Membership does not have the part any more.
func (of Requested) take(o *v1alpha1.Organization, d RequestDecision, now time.Time) ([]v1alpha1.MembershipChange, error) {
	if err := of.settled(o); err != nil {
		return nil, err
	}
	if of.InWorkspace == nil || EffectiveAt(of.InWorkspace, now) == nil {
		return nil, nil
	}
	c, err := of.change(d, now)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(c.Extra), func(x v1alpha1.MembershipExtra) bool { return x.Source == RequestSource(of.Request.Name) })
	if len(left) == len(c.Extra) {
		return nil, nil
	}
	c.Extra = left
	return append(without(o.Spec.MembershipChanges, c.User, c.Workspace), c), nil
}
