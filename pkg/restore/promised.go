package restore

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// orgOf returns the Organization of a Step. One that was accepted before the backup is made by the controller of people.
func (a *Applier) orgOf(ctx context.Context, s Step) (tenancy.Org, error) {
	if org, ok := a.Views.Org(s.Org); ok {
		return org, nil
	}
	if err := a.promised(ctx, s); err != nil {
		return tenancy.Org{}, err
	}
	// The cache can be behind one that was made a moment ago.
	_, err := a.Store.GetOrganization(ctx, s.Org)
	switch {
	case errs.Is(err, errs.NotFound):
		return tenancy.Org{}, notThere("the organization")
	case err != nil:
		return tenancy.Org{}, err
	}
	return tenancy.Org{}, errNotYet
}

// promised returns errNotYet if a person has the Organization of a Step to come. For a person who is soft-deleted no
// controller makes it until the undeletion, and then it would be there with all rights: so the promise is taken back.
func (a *Applier) promised(ctx context.Context, s Step) error {
	for _, u := range a.Members.People() {
		claim, claimed := tenancy.FindClaim(u.Spec.OrgClaims, s.Org)
		claimed = claimed && claim.Request != nil
		personal := a.PersonalOrgs && u.Status.PersonalOrg == "" && tenancy.PersonalOrgOf(u) == s.Org
		switch {
		case !u.DeletionTimestamp.IsZero() || !claimed && !personal:
		case u.Status.DeletionRequestedAt == nil:
			return errNotYet
		default:
			return a.takeBack(ctx, s, u)
		}
	}
	return nil
}

func (a *Applier) takeBack(ctx context.Context, s Step, u *v1alpha1.User) error {
	err := a.write(s, func() error {
		_, err := a.Store.ChangeUser(ctx, u, nil, func(_ context.Context, u *v1alpha1.User) error {
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
	return notThere("the organization, and its creator, who is deleted, does not get it any more")
}

// getsDefault reports whether a Workspace is the default one that a person has to come in their own Organization.
func (a *Applier) getsDefault(org tenancy.Org, workspace string) bool {
	return a.PersonalOrgs && org.Spec.Personal && tenancy.DefaultWorkspaceOf(org.Organization) == workspace &&
		slices.ContainsFunc(a.Members.People(), func(u *v1alpha1.User) bool {
			return u.Name == org.CreatedBy() && u.Status.DefaultWorkspace == "" && tenancy.Active(u)
		})
}
