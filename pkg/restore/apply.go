package restore

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

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

// Sessions is the part of session.Service that ends Sessions.
type Sessions interface {
	End(ctx context.Context, user, name string) error
	EndAllUntil(ctx context.Context, user string, until time.Time) error
	Advance(ctx context.Context, name string, generation int64) error
}

// Applier carries out a Plan by the writes that requests make.
type Applier struct {
	Views    Views
	Store    *store.Store
	Sessions Sessions
	Audit    *audit.Log
	// Clock is the time of the hub, and RightsClock that by which rights end.
	Clock, RightsClock clock.PassiveClock
	// Interval is the time between two looks whether the controllers have carried out what the Applier decided.
	Interval time.Duration
	// Save writes the Report down. It is called after every pass that did something.
	Save func(Report) error
	// Waiting is called with the Steps that are left, and why one of them is; for the readiness of the hub.
	Waiting func(left int, why error)
}

// errNotYet means that a controller has something to do before a Step is done.
var errNotYet = errors.New("the controllers have not carried it out yet")

// impossible is why a Step cannot be carried out.
type impossible struct{ reason string }

func (e impossible) Error() string { return e.reason }

// Run carries out all Steps, and returns when each is done or impossible. It begins with the Report of a run that was
// interrupted. It repeats what fails until ctx ends: a hub that has not ended everything does not serve.
func (a *Applier) Run(ctx context.Context, p Plan, r Report) (Report, error) {
	r.Plan = p
	left := r.left()
	err := wait.PollUntilContextCancel(ctx, a.Interval, true, func(ctx context.Context) (bool, error) {
		// Deletions begin when all else is done: nothing is written in what is deactivated.
		kept, early := left[:0:0], false
		var why error
		for _, s := range left {
			err := errNotYet
			if !early || !s.Kind.last() {
				err = a.step(ctx, s)
			}
			var never impossible
			switch {
			case err == nil:
				r.Done = append(r.Done, s)
			case errors.As(err, &never):
				log.From(ctx).Warn("what ended after the backup cannot be ended again", zap.String("step", string(s.Kind)), zap.String("org", s.Org),
					zap.String("workspace", s.Workspace), zap.String("object", s.Object), zap.String("reason", never.reason))
				r.Impossible = append(r.Impossible, Impossible{s, never.reason})
			default:
				kept, why, early = append(kept, s), err, true
			}
		}
		changed := len(kept) < len(left)
		left = kept
		if a.Waiting(len(left), why); changed {
			if err := a.Save(r); err != nil {
				return false, err
			}
		}
		return len(left) == 0, nil
	})
	return r, err
}

// step carries out a Step. The error is errNotYet, impossible, or one that passes.
func (a *Applier) step(ctx context.Context, s Step) error {
	switch s.Kind {
	case RemoveMember, LimitMember:
		return a.member(ctx, s)
	case DeleteBot, LimitBot, RevokeToken, RevokeTokens, RemoveTrust:
		return a.bot(ctx, s)
	case AnswerInvitation, BindInvitation:
		return a.invitation(ctx, s)
	case RejectPerson, DeletePerson:
		return a.person(ctx, s)
	case EndSession, EndSessions, AdvanceSession:
		return a.session(ctx, s)
	case DeleteOrg, LimitOrg:
		return a.org(ctx, s)
	case DeleteWorkspace, EndWorkspace:
		return a.workspace(ctx, s)
	case UseJobToken:
		return a.jobToken(ctx, s)
	case DeleteEntry:
		return a.entry(ctx, s)
	case DisableProvider:
		return impossible{"a restore does not disable providers; disable it"}
	}
	return impossible{"this version of the hub does not know the step"}
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

func notThere(what string) error { return impossible{"the backup does not have " + what} }

// orgOf returns the Organization of a Step. Nothing can be written in one that is deactivated.
func (a *Applier) orgOf(s Step) (tenancy.Org, error) {
	org, ok := a.Views.Org(s.Org)
	switch {
	case !ok:
		return tenancy.Org{}, notThere("the organization")
	case org.Deleted() && s.Kind != DeleteOrg && s.Kind != LimitOrg:
		return tenancy.Org{}, impossible{"the organization is deleted in the backup; end it when the organization is undeleted"}
	}
	return org, nil
}
