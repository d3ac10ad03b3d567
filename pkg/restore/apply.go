package restore

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// replay begins the actions of Steps in the audit log.
const replay = "replay "

// Views are the caches of what is restored.
type Views interface {
	Org(uuid string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	Invitation(name string) (*v1alpha1.Invitation, bool)
	OrgOfInvitation(i *v1alpha1.Invitation) (tenancy.Org, bool)
	// CatalogEntryIn finds an entry of an Organization, or a Global one if org is empty.
	CatalogEntryIn(org, name string) (*v1alpha1.CatalogEntry, bool)
}

// Members are the caches of people and of what they are in.
type Members interface {
	People() []*v1alpha1.User
	MembershipsOf(user string) []*v1alpha1.Membership
	Orgs() []tenancy.Org
	OrgByCluster(cluster string) (tenancy.Org, bool)
}

// Sessions is the part of session.Service that ends Sessions.
type Sessions interface {
	EndAllUntil(ctx context.Context, user string, until time.Time) error
	Advance(ctx context.Context, name string, generation int64) error
}

// Applier carries out a Plan by the writes that requests make.
type Applier struct {
	Views    Views
	Members  Members
	Store    *store.Store
	Sessions Sessions
	Audit    *audit.Log
	// Within calls do, which writes into the workspace of an Organization. While deactivated returns true, the workspace
	// is activated for the call.
	Within func(ctx context.Context, cluster string, deactivated func() bool, do func() error) error
	// Kept reports whether the hub keeps an APIBinding in every Workspace.
	Kept func(*kcpapisv1alpha2.APIBinding) bool
	// PersonalOrgs says whether every person gets an Organization.
	PersonalOrgs bool
	// Clock is the time of the hub, and RightsClock that by which rights end.
	Clock, RightsClock clock.PassiveClock
	// Interval is the time between two looks whether the controllers have carried out what the Applier decided.
	Interval time.Duration
	// Patience is the time for which a Step may fail while nothing else moves.
	Patience time.Duration
	// Save writes the Report down. It is called after every pass that did something.
	Save func(Report) error
	// Waiting is called with the Steps that are left, and why one of them is; for the readiness of the hub.
	Waiting func(left int, why error)
}

// errNotYet means that a controller has something to do before a Step is done.
var errNotYet = errors.New("the controllers have not carried it out yet")

// impossible is why a Step cannot be carried out.
type impossible struct {
	reason string
	// org is true if it is because the backup does not have the Organization of the Step.
	org bool
}

func (e impossible) Error() string { return e.reason }

// Run carries out all Steps, and returns when each is done or impossible. It begins with the Report of a run that was
// interrupted. It repeats what fails: a hub that has not ended everything does not serve. A Step that goes on failing
// while kcp answers and nothing else moves is given up after Patience, because people would wait for ever.
func (a *Applier) Run(ctx context.Context, p Plan, r Report) (Report, error) {
	r.Plan = p
	left := a.placed(r.left())
	tried := &trials{patience: a.Patience, since: map[stepKey]time.Time{}}
	// First, so that no group gives back what a Step takes.
	if err := a.forgetGroups(ctx, &r, tried, len(left)); err != nil {
		return r, err
	}
	err := wait.PollUntilContextCancel(ctx, a.Interval, true, func(ctx context.Context) (bool, error) {
		kept, why := a.begin().run(ctx, left, &r, tried)
		changed := len(kept) < len(left)
		left = kept
		if a.Waiting(len(left), why); changed {
			if err := a.Save(r); err != nil {
				return false, err
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return r, err
	}
	return r, a.awaitForgotten(ctx)
}

// write makes a change between its intent and its outcome in the audit log.
func (a *Applier) write(s Step, change func() error) error {
	e := audit.Event{
		ID: rand.Text(), ClientRequest: s.Source, Actor: audit.Actor{Kind: audit.ActorHub}, Action: replay + string(s.Kind),
		Org: s.Org, Workspace: s.Workspace, Object: s.Object,
	}
	if s.Facts.Given() {
		e.Facts = &s.Facts
	}
	err := a.Audit.Around(e, true, change)
	if errs.Is(err, errs.NotFound) {
		return notThere("it")
	}
	return err
}

func notThere(what string) error { return impossible{reason: "the backup does not have " + what} }

func warn(ctx context.Context, message string, s Step, reason string) {
	log.From(ctx).Warn(message, zap.String("step", string(s.Kind)), zap.String("org", s.Org), zap.String("workspace", s.Workspace),
		zap.String("object", s.Object), zap.String("reason", reason))
}
