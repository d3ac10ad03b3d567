package invitations

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Invitations are the caches of Invitations.
type Invitations interface {
	Invitation(name string) (*v1alpha1.Invitation, bool)
	InvitationsFor(email string) []*v1alpha1.Invitation
	InvitationsIn(orgCluster string) []*v1alpha1.Invitation
	// OrgOfInvitation finds the Organization that an Invitation belongs to.
	OrgOfInvitation(i *v1alpha1.Invitation) (tenancy.Org, bool)
}

// Places are the caches of what Invitations are about.
type Places interface {
	Org(uuid string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	ByName(user string) (*v1alpha1.User, bool)
	Membership(orgCluster, name string) (*v1alpha1.Membership, bool)
}

// KCP is the part of store.Store that decides about Invitations.
type KCP interface {
	ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit api.Edit[*v1alpha1.Organization]) (*v1alpha1.Organization, error)
	// GetMembership and GetInvitation return nil if there is none of that name.
	GetMembership(ctx context.Context, orgCluster, name string) (*v1alpha1.Membership, error)
	GetInvitation(ctx context.Context, orgCluster, name string) (*v1alpha1.Invitation, error)
	ListInvitations(ctx context.Context, orgCluster string) ([]v1alpha1.Invitation, error)
}

// Service decides about Invitations, by the caches and by kcp.
type Service struct {
	Invitations Invitations
	Places      Places
	KCP         KCP
	// Now is the time at which Invitations expire.
	Now func() time.Time
	// Await waits until a condition on the caches holds.
	Await func(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
}

const (
	// newInvitation is the age of an Invitation up to which the cache may not have it yet.
	newInvitation = 10 * time.Second
	// newInvitationWait is the time that a request waits for one that another replica made.
	newInvitationWait = 2 * time.Second
)

// find returns an Invitation, or nil if there is none. It waits for one that its ID says is new.
func (s *Service) find(ctx context.Context, id string) (i *v1alpha1.Invitation) {
	i, ok := s.Invitations.Invitation(id)
	if ok {
		return i
	}
	named, err := uuid.Parse(id)
	if err != nil || named.Version() != 7 || s.Now().Sub(time.Unix(named.Time().UnixTime())).Abs() > newInvitation {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, newInvitationWait)
	defer cancel()
	_ = s.Await(ctx, []tenancy.Ref{tenancy.InvitationRef(id)}, func() bool { i, ok = s.Invitations.Invitation(id); return ok })
	return i
}

// invited is an Invitation with the place that it is for.
type invited struct {
	*v1alpha1.Invitation
	org tenancy.Org
	// workspace is nil for an Invitation to the Organization.
	workspace *tenancy.Workspace
}

// placed returns an Invitation with its place. A Workspace that the caches do not have counts as deleted.
func (s *Service) placed(i *v1alpha1.Invitation) (invited, bool) {
	org, ok := s.Invitations.OrgOfInvitation(i)
	in := invited{Invitation: i, org: org}
	if uuid := tenancy.InvitedWorkspace(i.Spec); ok && uuid != "" {
		ws, found := s.Places.Workspace(org.UUID(), uuid)
		if !found {
			ws = tenancy.Workspace{UUID: uuid, OrgUUID: org.UUID(), Terminating: true}
		}
		in.workspace = &ws
	}
	return in, ok
}

// state is the state of an Invitation according to the caches.
func (s *Service) state(in invited) v1alpha1.InvitationState {
	state := tenancy.InvitationStateAt(in.Invitation, s.Now())
	if pending, ok := tenancy.InvitationChangeOf(in.org.Organization, in.Name); ok && pending.State != "" {
		state = pending.State
	}
	if state != v1alpha1.InvitationOpen {
		return state
	}
	inviter, _ := s.Places.ByName(in.Spec.InvitedBy.Name)
	held := func(workspace string) *v1alpha1.Membership {
		m, _ := s.Places.Membership(in.org.ClusterID, tenancy.MembershipName(in.Spec.InvitedBy.Name, workspace))
		return m
	}
	var inWorkspace *v1alpha1.Membership
	if in.workspace != nil {
		inWorkspace = held(in.workspace.UUID)
	}
	if _, ok := tenancy.StillInvites(in.Invitation, inviter, in.org, in.workspace, held(""), inWorkspace, s.Now()); !ok {
		return tenancy.InvitationVoid
	}
	return state
}

// judge refuses an Invitation whose inviter may not invite any more according to kcp. o is the version of
// the Organization that something is about to be granted for. by is what entitles the inviter.
func (s *Service) judge(ctx context.Context, o *v1alpha1.Organization, in invited) (by tenancy.Standing, err error) {
	held := func(workspace string) (*v1alpha1.Membership, error) {
		return s.KCP.GetMembership(ctx, in.org.ClusterID, tenancy.MembershipName(in.Spec.InvitedBy.Name, workspace))
	}
	inOrg, err := held("")
	if err != nil {
		return by, err
	}
	var inWorkspace *v1alpha1.Membership
	if in.workspace != nil {
		if inWorkspace, err = held(in.workspace.UUID); err != nil {
			return by, err
		}
	}
	inviter, _ := s.Places.ByName(in.Spec.InvitedBy.Name)
	org := tenancy.Org{Organization: o, ClusterID: in.org.ClusterID}
	by, ok := tenancy.StillInvites(in.Invitation, inviter, org, in.workspace, inOrg, inWorkspace, s.Now())
	if !ok {
		return by, tenancy.NotOpen(tenancy.InvitationVoid)
	}
	return by, nil
}

// decide has the Organization accept a change of an Invitation by compare-and-swap. change gets the
// Invitation that kcp has, or nil.
func (s *Service) decide(ctx context.Context, in invited, change func(context.Context, *v1alpha1.Organization, *v1alpha1.Invitation) error) (*v1alpha1.Organization, error) {
	return s.KCP.ChangeOrganization(ctx, in.org.Organization, nil, func(ctx context.Context, o *v1alpha1.Organization) error {
		held, err := s.KCP.GetInvitation(ctx, in.org.ClusterID, in.Name)
		if err != nil {
			return err
		}
		return change(ctx, o, held)
	})
}

// answer has the Organization accept that an Invitation is declined or revoked.
func (s *Service) answer(ctx context.Context, in invited, state v1alpha1.InvitationState, by string) (*v1alpha1.Organization, error) {
	c := v1alpha1.InvitationChange{Name: in.Name, State: state, By: by, RequestedAt: tenancy.DecisionTime(s.Now())}
	return s.decide(ctx, in, func(_ context.Context, o *v1alpha1.Organization, held *v1alpha1.Invitation) error {
		changes, err := tenancy.DecideAnswer(o, held, c, s.Now())
		if changes != nil {
			o.Spec.InvitationChanges = changes
		}
		return err
	})
}

// accept has the Organization accept that a person takes the place. valid refuses the person's
// credential.
func (s *Service) accept(ctx context.Context, in invited, by string, valid func() error) (*v1alpha1.Organization, error) {
	c := v1alpha1.InvitationChange{
		Name: in.Name, State: v1alpha1.InvitationAccepted, By: by, RequestedAt: tenancy.DecisionTime(s.Now()),
	}
	return s.decide(ctx, in, func(ctx context.Context, o *v1alpha1.Organization, i *v1alpha1.Invitation) error {
		if err := valid(); err != nil {
			return err
		}
		held, err := s.KCP.GetMembership(ctx, in.org.ClusterID, tenancy.MembershipName(by, tenancy.InvitedWorkspace(in.Spec)))
		if err != nil {
			return err
		}
		judge := func() (tenancy.Standing, error) { return s.judge(ctx, o, in) }
		answers, changes, err := tenancy.DecideAcceptance(o, i, held, c, s.Now(), judge)
		if err != nil || changes == nil {
			return err
		}
		o.Spec.InvitationChanges, o.Spec.MembershipChanges = answers, changes
		return nil
	})
}

// Vouch implements httpmw.Invited.
func (s *Service) Vouch(ctx context.Context, id *auth.Identity) (name string, err error) {
	for _, in := range s.signUps(ctx, id) {
		if s.state(in) != v1alpha1.InvitationOpen {
			continue
		}
		err := s.keep(ctx, in, tenancy.IdentityHash(id.Issuer, id.Subject))
		switch {
		case err == nil:
			return in.Name, nil
		case !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.NotFound):
			return "", err
		}
	}
	return "", nil
}

// signUps are the Invitations that an identity may sign up with: the one that the context presents, or
// those for its verified address.
func (s *Service) signUps(ctx context.Context, id *auth.Identity) (all []invited) {
	var held []*v1alpha1.Invitation
	if email := tenancy.NormalEmail(id.VerifiedEmail); email != "" {
		held = s.Invitations.InvitationsFor(email)
	}
	if presented, ok := httpmw.InvitationFrom(ctx); ok {
		i := s.find(ctx, presented.ID)
		if tenancy.OpensInvitation(i, presented.Secret) && (i.Spec.Email == "" || addressed(i, id)) {
			held = []*v1alpha1.Invitation{i}
		}
	}
	for _, i := range held {
		if in, ok := s.placed(i); ok {
			all = append(all, in)
		}
	}
	return all
}

// addressed reports whether an Invitation is for the verified address of an identity.
func addressed(i *v1alpha1.Invitation, id *auth.Identity) bool {
	return i.Spec.Email != "" && i.Spec.Email == tenancy.NormalEmail(id.VerifiedEmail)
}

// keep has the Organization accept that an identity signs up with an Invitation.
func (s *Service) keep(ctx context.Context, in invited, identity string) error {
	c := v1alpha1.InvitationChange{Name: in.Name, SignedUp: identity, RequestedAt: tenancy.DecisionTime(s.Now())}
	_, err := s.decide(ctx, in, func(ctx context.Context, o *v1alpha1.Organization, held *v1alpha1.Invitation) error {
		changes, err := tenancy.DecideAnswer(o, held, c, s.Now())
		if err != nil {
			return err
		}
		if _, err := s.judge(ctx, o, in); err != nil {
			return err
		}
		if changes != nil {
			o.Spec.InvitationChanges = changes
		}
		return nil
	})
	return err
}
