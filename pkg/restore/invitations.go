package restore

import (
	"cmp"
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// placed returns the Steps with the Organizations that have yet to make their Invitations. The event of a sign-up does not
// say it, and once the Invitation is made the Organization does not, either, while the cache may not have the Invitation.
func (a *Applier) placed(steps []Step) []Step {
	makes := map[string]string{}
	for _, org := range a.Members.Orgs() {
		if org.Organization == nil {
			continue
		}
		for _, c := range org.Spec.InvitationChanges {
			if c.Invitation != nil {
				makes[c.Name] = org.UUID()
			}
		}
	}
	for i, s := range steps {
		if s.Kind == BindInvitation || s.Kind == AnswerInvitation {
			steps[i].maker = makes[s.Object]
		}
	}
	return steps
}

// invitation has the Organization decide about an Invitation. Its controller carries that out before a request can
// see the Invitation: what is decided counts.
func (p *pass) invitation(ctx context.Context, s Step) error {
	org, ok := p.orgOfInvitation(s)
	switch {
	case !ok:
		return notThere("the organization")
	case org == "":
		return notThere("the invitation")
	}
	s.Org = org
	return p.within(ctx, s, func(org tenancy.Org) error { return p.answer(ctx, org, s) })
}

// orgOfInvitation returns the UUID of the Organization of a Step about an Invitation; empty if nothing says it. ok is false
// if the Organization is gone.
func (p *pass) orgOfInvitation(s Step) (uuid string, ok bool) {
	i, held := p.Views.Invitation(s.Object)
	if !held {
		return cmp.Or(s.Org, s.maker), true
	}
	of, ok := p.Views.OrgOfInvitation(i)
	if !ok {
		return "", false
	}
	return of.UUID(), true
}

func (p *pass) answer(ctx context.Context, org tenancy.Org, s Step) error {
	at, err := p.placeOf(ctx, org)
	if err != nil {
		return err
	}
	// What is made leaves the Organization afterwards, so this is read after that.
	held, err := p.Store.GetInvitation(ctx, org.ClusterID, s.Object)
	switch making := makes(at.read, s.Object); {
	case err != nil:
		return err
	case making && !org.Deleted():
		// What was accepted before the backup must not come after this.
		return errNotYet
	case held == nil && !making:
		return notThere("the invitation")
	}
	return p.write(s, func() error {
		err := p.change(ctx, at, func(ctx context.Context, o *v1alpha1.Organization) error {
			held, err := p.Store.GetInvitation(ctx, org.ClusterID, s.Object)
			if err != nil {
				return err
			}
			if held == nil && makes(o, s.Object) {
				// No controller makes it. What a soft-deleted Organization has accepted is taken back.
				o.Spec.InvitationChanges = slices.DeleteFunc(o.Spec.InvitationChanges, func(c v1alpha1.InvitationChange) bool {
					return c.Name == s.Object
				})
				return nil
			}
			changes, err := tenancy.DecideAnswer(o, held, p.answerOf(s), p.RightsClock.Now())
			if changes != nil {
				o.Spec.InvitationChanges = changes
			}
			return err
		})
		if errs.Is(err, errs.Conflict) {
			// It is not open any more.
			return nil
		}
		return err
	})
}

// answerOf returns what a Step has the Organization decide.
func (a *Applier) answerOf(s Step) v1alpha1.InvitationChange {
	c := v1alpha1.InvitationChange{Name: s.Object, RequestedAt: tenancy.DecisionTime(a.Clock.Now())}
	if s.Kind == BindInvitation {
		c.SignedUp = tenancy.IdentityHash(s.Facts.Issuer, s.Facts.Subject)
	} else {
		c.State, c.By = s.State, s.By
	}
	return c
}

// makes reports whether an Organization has yet to make an Invitation.
func makes(o *v1alpha1.Organization, name string) bool {
	c, pending := tenancy.InvitationChangeOf(o, name)
	return pending && c.Invitation != nil
}
