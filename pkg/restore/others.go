package restore

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (p *pass) bot(ctx context.Context, s Step) error {
	return p.within(ctx, s, func(org tenancy.Org) error { return p.botOf(ctx, org, s) })
}

func (p *pass) botOf(ctx context.Context, org tenancy.Org, s Step) error {
	at, err := p.placeOf(ctx, org)
	if err != nil {
		return err
	}
	if _, pending := tenancy.BotChangeOf(at.read, s.Object); pending && org.Deleted() {
		// No controller carries it out. What a soft-deleted Organization has granted is taken back.
		err := p.change(ctx, at, func(_ context.Context, o *v1alpha1.Organization) error {
			o.Spec.BotChanges = slices.DeleteFunc(o.Spec.BotChanges, func(c v1alpha1.BotChange) bool { return c.Name == s.Object })
			return nil
		})
		if err != nil {
			return err
		}
	}
	if _, pending := tenancy.BotChangeOf(at.read, s.Object); pending {
		// What was granted before the backup must not come after this, and neither must the bot itself.
		return errNotYet
	}
	held, err := p.botNamed(ctx, at, s.Object)
	switch {
	case err != nil:
		return err
	case held == nil:
		return notThere("the bot")
	case !held.DeletionTimestamp.IsZero():
		// A bot that is being deleted gives nothing.
		return nil
	case s.Kind == DeleteBot:
		delete(at.bots, s.Object)
		return p.write(s, func() error { return p.Store.DeleteBot(ctx, held, nil) })
	}
	left := held.DeepCopy()
	if takeFromBot(left, s); equality.Semantic.DeepEqual(left.Spec, held.Spec) {
		return nil
	}
	return p.write(s, func() error {
		changed, err := p.Store.ChangeBot(ctx, held, nil, func(_ context.Context, b *v1alpha1.Bot) error {
			takeFromBot(b, s)
			return nil
		})
		if err == nil {
			at.bots[s.Object] = changed
		}
		return err
	})
}

func takeFromBot(b *v1alpha1.Bot, s Step) {
	switch s.Kind {
	case LimitBot:
		if role := v1alpha1.Role(s.Facts.Role); tenancy.Lowers(b.Spec.Role, role) {
			tenancy.SetBotRole(b, role)
		}
	case RevokeToken:
		if tokens, ok := tenancy.WithoutToken(b, tokenOf(s)); ok {
			b.Spec.Tokens = tokens
		}
	case RevokeTokens:
		left := slices.DeleteFunc(slices.Clone(b.Spec.Tokens), func(t v1alpha1.BotToken) bool { return !t.CreatedAt.After(s.At) })
		if len(left) < len(b.Spec.Tokens) {
			b.Spec.Tokens, b.Spec.Generation = left, b.Spec.Generation+1
		}
	case RemoveTrust:
		tenancy.RemoveTrust(b, s.Facts.Trust)
	}
}

func (p *pass) jobToken(ctx context.Context, s Step) error {
	until := *s.Facts.JobTokenExpiresAt
	if p.Clock.Now().After(until) {
		return nil
	}
	return p.write(s, func() error {
		err := p.Store.UseSubjectToken(ctx, s.Facts.JobToken, until)
		if errs.Is(err, errs.Conflict) {
			return nil
		}
		return err
	})
}

func (p *pass) person(ctx context.Context, s Step) error {
	held, err := p.Store.GetUser(ctx, s.Object)
	if errs.Is(err, errs.NotFound) {
		return notThere("the person")
	}
	if err != nil {
		return err
	}
	return p.write(s, func() error {
		_, err := p.Store.ChangeUser(ctx, held, nil, func(_ context.Context, u *v1alpha1.User) error {
			switch {
			case s.Kind == RejectPerson:
				u.Spec.Registration = v1alpha1.RegistrationRejected
				return nil
			case s.Kind == SuspendPerson && tenancy.RegistrationOf(u) == v1alpha1.RegistrationApproved:
				u.Spec.Registration = v1alpha1.RegistrationPending
				return nil
			case s.Kind == SuspendPerson:
				return nil
			}
			at := tenancy.Deletable{Noun: "account", Requested: u.Status.DeletionRequestedAt, Removing: !u.DeletionTimestamp.IsZero()}
			return mark(at, s.At, &u.Status.DeletionRequestedAt)
		})
		return err
	})
}

// mark soft-deletes an object at the time of the event, so that its grace is that of the lost hub. One that is being
// removed stays as it is.
func mark(d tenancy.Deletable, at time.Time, requested **metav1.Time) error {
	if d.Removing {
		return nil
	}
	marked, err := d.Mark(true, at)
	*requested = marked
	return err
}

func (p *pass) session(ctx context.Context, s Step) error {
	if s.Kind == EndSessions {
		return p.write(s, func() error { return p.signOut(ctx, s.Object, s) })
	}
	held, err := p.Store.GetSession(ctx, s.Object)
	missing := errs.Is(err, errs.NotFound)
	person := s.Person
	switch {
	case err != nil && !missing:
		return err
	case !missing:
		person = held.Spec.UserRef.Name
	case person == "" || s.Kind == AdvanceSession:
		return notThere("the session")
	}
	return p.write(s, func() error {
		if s.Kind == AdvanceSession {
			return p.Sessions.Advance(ctx, s.Object, s.Facts.Generation)
		}
		return p.signOut(ctx, person, s)
	})
}

// signOut ends all Sessions of a person, and refuses the ID tokens that were issued until a Step. The Session of the
// backup does not know the tokens that it got later, and the backup may not have the Session: only the time at which
// they were issued tells them.
func (p *pass) signOut(ctx context.Context, person string, s Step) error {
	until := p.RightsClock.Now()
	if !s.Unanswered && s.At.Before(until) {
		until = s.At
	}
	return p.Sessions.EndAllUntil(ctx, person, until)
}

func (p *pass) org(ctx context.Context, s Step) error {
	org, err := p.orgOf(ctx, s)
	if err != nil {
		return err
	}
	return p.write(s, func() error {
		_, err := p.Store.ChangeOrganization(ctx, org.Organization, nil, func(_ context.Context, o *v1alpha1.Organization) error {
			if s.Kind == DeleteOrg {
				at := tenancy.Deletable{Noun: "organization", Requested: o.Status.DeletionRequestedAt, Removing: !o.DeletionTimestamp.IsZero()}
				return mark(at, s.At, &o.Status.DeletionRequestedAt)
			}
			if s.Facts.DefaultAccess == string(v1alpha1.DefaultAccessNone) {
				o.Spec.DefaultAccess = v1alpha1.DefaultAccessNone
			}
			if s.Facts.WorkspaceCreation == string(v1alpha1.WhoAdmin) {
				o.Spec.WorkspaceCreation = v1alpha1.WhoAdmin
			}
			if s.Facts.CatalogEntryCreation == string(v1alpha1.WhoAdmin) {
				o.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin
			}
			return nil
		})
		return err
	})
}

func (p *pass) workspace(ctx context.Context, s Step) error {
	return p.within(ctx, s, func(org tenancy.Org) error { return p.workspaceOf(ctx, org, s) })
}

func (p *pass) workspaceOf(ctx context.Context, org tenancy.Org, s Step) error {
	ws, ok := p.Views.Workspace(s.Org, s.Workspace)
	if !ok {
		if _, claimed := tenancy.FindClaim(org.Spec.WorkspaceClaims, s.Workspace); claimed || p.getsDefault(org, s.Workspace) {
			// It was accepted before the backup, so its controller makes it, or finds that it is gone.
			return errNotYet
		}
		return notThere("the workspace")
	}
	return p.write(s, func() error {
		change := func(ws tenancy.Workspace, annotations map[string]string) error {
			if end, ok := endOf(s.Facts); s.Kind == EndWorkspace && ok && !ws.Deleted() && tenancy.EndsSooner(end, ws.ExpiresAt) {
				tenancy.SetWorkspaceEnd(annotations, end)
			}
			if s.Kind != DeleteWorkspace || ws.Terminating || ws.DeletionRequestedAt != nil {
				return nil
			}
			annotations[v1alpha1.DeletionRequestedAtAnnotation] = tenancy.RequestedAt(s.At).Format(time.RFC3339)
			return nil
		}
		_, err := p.Store.ChangeWorkspace(ctx, org.ClusterID, ws, nil, change)
		return err
	})
}

func (p *pass) entry(ctx context.Context, s Step) error {
	remove := func(tenancy.Org) error {
		e, ok := p.Views.CatalogEntryIn(s.Org, s.Object)
		if !ok {
			return notThere("the catalog entry")
		}
		return p.write(s, func() error { return p.Store.DeleteCatalogEntry(ctx, e, nil) })
	}
	if s.Org == "" {
		return remove(tenancy.Org{})
	}
	return p.within(ctx, s, remove)
}
