package restore

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// orgOf returns the Organization of a Step. One that was accepted before the backup is made by the controller of people.
// What is found out about one that the caches do not have is the same for all Steps.
func (p *pass) orgOf(ctx context.Context, s Step) (tenancy.Org, error) {
	if org, ok := p.Views.Org(s.Org); ok {
		return org, nil
	}
	why, known := p.missing[s.Org]
	if !known {
		why = p.whyMissing(ctx, s)
		p.missing[s.Org] = why
	}
	return tenancy.Org{}, why
}

// whyMissing returns why the caches do not have an Organization.
func (p *pass) whyMissing(ctx context.Context, s Step) error {
	if u, ok := p.getsOrg(s.Org); ok {
		if u.Status.DeletionRequestedAt == nil {
			return errNotYet
		}
		return p.takeBack(ctx, s, u)
	}
	// The cache can be behind one that was made a moment ago.
	_, err := p.Store.GetOrganization(ctx, s.Org)
	switch {
	case errs.Is(err, errs.NotFound):
		return impossible{reason: noOrg, org: true}
	case err != nil:
		return err
	}
	return errNotYet
}

const noOrg = "the backup does not have the organization"

// getsOrg returns the first person who has an Organization to come. For a person who is soft-deleted no controller makes
// it until the undeletion, and then it would be there with all rights: so the promise is taken back.
func (p *pass) getsOrg(uuid string) (u *v1alpha1.User, ok bool) {
	if p.coming == nil {
		p.coming = map[string]*v1alpha1.User{}
		for _, u := range p.Members.People() {
			for _, org := range p.orgsToCome(u) {
				if _, ok := p.coming[org]; !ok {
					p.coming[org] = u
				}
			}
		}
	}
	u, ok = p.coming[uuid]
	return u, ok
}

// orgsToCome returns the UUIDs of the Organizations that a person has to come.
func (a *Applier) orgsToCome(u *v1alpha1.User) (orgs []string) {
	if !u.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, c := range u.Spec.OrgClaims {
		if c.Request != nil {
			orgs = append(orgs, c.UUID)
		}
	}
	if a.PersonalOrgs && u.Status.PersonalOrg == "" {
		orgs = append(orgs, tenancy.PersonalOrgOf(u))
	}
	return orgs
}

// takeBack takes from a person the Organization of a Step that they have to come.
func (p *pass) takeBack(ctx context.Context, s Step, u *v1alpha1.User) error {
	err := p.write(s, func() error {
		_, err := p.Store.ChangeUser(ctx, u, nil, func(_ context.Context, u *v1alpha1.User) error {
			u.Spec.OrgClaims = slices.DeleteFunc(u.Spec.OrgClaims, func(c v1alpha1.Claim) bool { return c.UUID == s.Org })
			if tenancy.PersonalOrgOf(u) == s.Org {
				// As if they had deleted it: it is made one time.
				u.Status.PersonalOrg = s.Org
			}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	return impossible{reason: noOrg + ", and its creator, who is deleted, does not get it any more", org: true}
}

// getsDefault reports whether a Workspace is the default one that a person has to come in their own Organization.
func (a *Applier) getsDefault(org tenancy.Org, workspace string) bool {
	return a.PersonalOrgs && org.Spec.Personal && tenancy.DefaultWorkspaceOf(org.Organization) == workspace &&
		slices.ContainsFunc(a.Members.People(), func(u *v1alpha1.User) bool {
			return u.Name == org.CreatedBy() && u.Status.DefaultWorkspace == "" && tenancy.Active(u)
		})
}
