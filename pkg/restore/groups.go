package restore

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// mapping removes a mapping of a group of the identity provider.
func (p *pass) mapping(ctx context.Context, s Step) error {
	org, err := p.orgOf(ctx, s)
	if err != nil {
		return err
	}
	if _, ok := tenancy.MappingOf(org.Organization, s.Object); !ok {
		return nil
	}
	return p.write(s, func() error {
		_, err := p.Store.ChangeOrganization(ctx, org.Organization, nil, func(_ context.Context, o *v1alpha1.Organization) error {
			tenancy.UnmapGroup(o, s.Object)
			return nil
		})
		return err
	})
}

// forgetGroups makes the hub forget the groups of everybody: no event says who has left a group since the backup. A
// credential that is issued from now on says the groups again. Nobody keeps the others waiting: a person whom kcp goes on
// refusing to write is given up like a Step. left is the number of Steps that follow.
func (a *Applier) forgetGroups(ctx context.Context, r *Report, tried *trials, left int) error {
	over, before := r.over(), 0
	return wait.PollUntilContextCancel(ctx, a.Interval, true, func(ctx context.Context) (bool, error) {
		var why error
		people := 0
		for _, u := range a.Members.People() {
			s := Step{Kind: ForgetGroups, Object: u.Name}
			if u.Spec.Groups == nil || len(u.Spec.Groups.Hashes) == 0 || over[keyOf(s)] {
				continue
			}
			people++
			err := a.forgetGroupsOf(ctx, u)
			if err != nil && tried.over(s, err, a.Clock.Now()) {
				r.Impossible, over[keyOf(s)] = append(r.Impossible, GiveUp(ctx, s, err, a.Patience)), true
			} else if err != nil {
				why = fmt.Errorf("forget the groups of %s: %w", u.Name, err)
			}
		}
		if people < before {
			tried.moved(a.Clock.Now())
		}
		before = people
		r.GroupsForgotten = max(r.GroupsForgotten, people)
		if people > 0 {
			a.Waiting(left, why)
		}
		return people == 0, nil
	})
}

func (a *Applier) forgetGroupsOf(ctx context.Context, u *v1alpha1.User) error {
	_, err := a.Store.ChangeUser(ctx, u, nil, func(_ context.Context, u *v1alpha1.User) error {
		u.Spec.Groups = &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(a.RightsClock.Now()).Rfc3339Copy()}
		return nil
	})
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// awaitForgotten returns when the controller of Organizations has taken from everybody what groups gave. Where it takes
// nothing more for as long as Patience, the hub serves nevertheless: each of these parts ends by time.
func (a *Applier) awaitForgotten(ctx context.Context) error {
	left, moved := -1, a.Clock.Now()
	lags := errors.New("what groups of the identity provider gave is being taken from memberships")
	return wait.PollUntilContextCancel(ctx, a.Interval, true, func(ctx context.Context) (bool, error) {
		parts := a.groupParts()
		if left != parts {
			left, moved = parts, a.Clock.Now()
		}
		if parts == 0 {
			return true, nil
		}
		a.Waiting(0, lags)
		if a.Clock.Since(moved) >= a.Patience {
			log.From(ctx).Warn("parts of memberships by groups of the identity provider could not be taken", zap.Int("memberships", parts))
			return true, nil
		}
		return false, nil
	})
}

// groupParts counts the Memberships of active people in living Organizations that have a part by a group.
func (a *Applier) groupParts() (memberships int) {
	for _, u := range a.Members.People() {
		if !tenancy.Active(u) {
			continue
		}
		for _, m := range a.Members.MembershipsOf(u.Name) {
			org, ok := a.Members.OrgByCluster(string(logicalcluster.From(m)))
			if ok && !org.Deleted() && tenancy.HasGroupPart(m) {
				memberships++
			}
		}
	}
	return memberships
}
