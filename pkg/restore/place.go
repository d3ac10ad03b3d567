package restore

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// place is an Organization as kcp has it, for all Steps of a pass.
type place struct {
	cluster string
	deleted bool
	// read was read before all else here. What it has yet to carry out may be missing there, and comes. now is what it is
	// after the writes of the pass.
	read, now *v1alpha1.Organization
	// members are the Memberships of people, by the name of the User. They are nil until somebody asks, and refused is why
	// they cannot be read.
	members map[string][]*v1alpha1.Membership
	refused error
	// bots are those that were read, nil for one that is not there.
	bots map[string]*v1alpha1.Bot
}

// placeOf reads an Organization once.
func (p *pass) placeOf(ctx context.Context, org tenancy.Org) (*place, error) {
	if at, ok := p.places[org.UUID()]; ok {
		return at, nil
	}
	o, err := p.Store.GetOrganization(ctx, org.UUID())
	if errs.Is(err, errs.NotFound) {
		return nil, notThere("the organization")
	}
	if err != nil {
		return nil, err
	}
	at := &place{cluster: org.ClusterID, deleted: org.Deleted(), read: o, now: o, bots: map[string]*v1alpha1.Bot{}}
	p.places[org.UUID()] = at
	return at, nil
}

// listed is placeOf, with the Memberships.
func (p *pass) listed(ctx context.Context, org tenancy.Org) (*place, error) {
	at, err := p.placeOf(ctx, org)
	if err != nil || at.members != nil {
		return at, err
	}
	if at.refused != nil {
		return nil, at.refused
	}
	all, err := p.Store.ListMemberships(ctx, at.cluster)
	if err != nil {
		if !apierrors.IsForbidden(err) {
			// A cluster that was activated a moment ago is asked again.
			at.refused = err
		}
		return nil, err
	}
	at.members = map[string][]*v1alpha1.Membership{}
	for i := range all {
		user := all[i].Spec.UserRef.Name
		at.members[user] = append(at.members[user], &all[i])
	}
	return at, nil
}

// change changes the Organization.
func (p *pass) change(ctx context.Context, at *place, edit func(ctx context.Context, o *v1alpha1.Organization) error) error {
	changed, err := p.Store.ChangeOrganization(ctx, at.now, nil, edit)
	if err != nil {
		return err
	}
	at.now = changed
	if at.deleted {
		// Nothing is carried out in it.
		at.read = changed
	}
	return nil
}

// member returns the Membership of a User in the Organization, or in its Workspace if workspace is not empty. It is nil if
// there is none.
func (at *place) member(user, workspace string) *v1alpha1.Membership {
	for _, m := range at.members[user] {
		if m.Name == tenancy.MembershipName(user, workspace) {
			return m
		}
	}
	return nil
}

// remove forgets a Membership that was deleted.
func (at *place) remove(m *v1alpha1.Membership) {
	user := m.Spec.UserRef.Name
	at.members[user] = slices.DeleteFunc(at.members[user], func(o *v1alpha1.Membership) bool { return o == m })
}

// botNamed reads a bot once. It is nil if there is none.
func (p *pass) botNamed(ctx context.Context, at *place, name string) (*v1alpha1.Bot, error) {
	if b, ok := at.bots[name]; ok {
		return b, nil
	}
	b, err := p.Store.GetBot(ctx, at.cluster, name)
	if err != nil {
		return nil, err
	}
	at.bots[name] = b
	return b, nil
}
