package restore

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (a *Applier) bot(ctx context.Context, s Step) error {
	return a.within(ctx, s, func(org tenancy.Org) error { return a.botOf(ctx, org, s) })
}

func (a *Applier) botOf(ctx context.Context, org tenancy.Org, s Step) error {
	o, err := a.Store.GetOrganization(ctx, org.UUID())
	if err != nil {
		return err
	}
	if _, pending := tenancy.BotChangeOf(o, s.Object); pending && org.Deleted() {
		// No controller carries it out. What a soft-deleted Organization has granted is taken back.
		o, err = a.Store.ChangeOrganization(ctx, o, nil, func(_ context.Context, o *v1alpha1.Organization) error {
			o.Spec.BotChanges = slices.DeleteFunc(o.Spec.BotChanges, func(c v1alpha1.BotChange) bool { return c.Name == s.Object })
			return nil
		})
		if err != nil {
			return err
		}
	}
	if _, pending := tenancy.BotChangeOf(o, s.Object); pending {
		// What was granted before the backup must not come after this, and neither must the bot itself.
		return errNotYet
	}
	held, err := a.Store.GetBot(ctx, org.ClusterID, s.Object)
	switch {
	case err != nil:
		return err
	case held == nil:
		return notThere("the bot")
	case !held.DeletionTimestamp.IsZero():
		// A bot that is being deleted gives nothing.
		return nil
	}
	return a.write(s, func() error {
		if s.Kind == DeleteBot {
			return a.Store.DeleteBot(ctx, held, nil)
		}
		_, err := a.Store.ChangeBot(ctx, held, nil, func(_ context.Context, b *v1alpha1.Bot) error {
			takeFromBot(b, s)
			return nil
		})
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
		if tokens, ok := tenancy.WithoutToken(b, cmp.Or(s.Facts.Rotated, s.Facts.Token)); ok {
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

func (a *Applier) jobToken(ctx context.Context, s Step) error {
	until := *s.Facts.JobTokenExpiresAt
	if a.Clock.Now().After(until) {
		return nil
	}
	return a.write(s, func() error {
		err := a.Store.UseSubjectToken(ctx, s.Facts.JobToken, until)
		if errs.Is(err, errs.Conflict) {
			return nil
		}
		return err
	})
}

func (a *Applier) person(ctx context.Context, s Step) error {
	held, err := a.Store.GetUser(ctx, s.Object)
	if errs.Is(err, errs.NotFound) {
		return notThere("the person")
	}
	if err != nil {
		return err
	}
	return a.write(s, func() error {
		_, err := a.Store.ChangeUser(ctx, held, nil, func(_ context.Context, u *v1alpha1.User) error {
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

func (a *Applier) session(ctx context.Context, s Step) error {
	if s.Kind == EndSessions {
		return a.write(s, func() error { return a.signOut(ctx, s.Object, s) })
	}
	held, err := a.Store.GetSession(ctx, s.Object)
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
	return a.write(s, func() error {
		if s.Kind == AdvanceSession {
			return a.Sessions.Advance(ctx, s.Object, s.Facts.Generation)
		}
		return a.signOut(ctx, person, s)
	})
}

// signOut ends all Sessions of a person, and refuses the ID tokens that were issued until a Step. The Session of the
// backup does not know the tokens that it got later, and the backup may not have the Session: only the time at which
// they were issued tells them.
func (a *Applier) signOut(ctx context.Context, person string, s Step) error {
	until := a.RightsClock.Now()
	if !s.Unanswered && s.At.Before(until) {
		until = s.At
	}
	return a.Sessions.EndAllUntil(ctx, person, until)
}

func (a *Applier) org(ctx context.Context, s Step) error {
	org, err := a.orgOf(ctx, s)
	if err != nil {
		return err
	}
	return a.write(s, func() error {
		_, err := a.Store.ChangeOrganization(ctx, org.Organization, nil, func(_ context.Context, o *v1alpha1.Organization) error {
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

func (a *Applier) workspace(ctx context.Context, s Step) error {
	return a.within(ctx, s, func(org tenancy.Org) error { return a.workspaceOf(ctx, org, s) })
}

func (a *Applier) workspaceOf(ctx context.Context, org tenancy.Org, s Step) error {
	ws, ok := a.Views.Workspace(s.Org, s.Workspace)
	if !ok {
		if _, claimed := tenancy.FindClaim(org.Spec.WorkspaceClaims, s.Workspace); claimed || a.getsDefault(org, s.Workspace) {
			// It was accepted before the backup, so its controller makes it, or finds that it is gone.
			return errNotYet
		}
		return notThere("the workspace")
	}
	return a.write(s, func() error {
		_, err := a.Store.ChangeWorkspace(ctx, org.ClusterID, ws, nil, func(ws tenancy.Workspace, annotations map[string]string) error {
			if end, ok := endOf(s.Facts); s.Kind == EndWorkspace && ok && !ws.Deleted() && tenancy.EndsSooner(end, ws.ExpiresAt) {
				tenancy.SetWorkspaceEnd(annotations, end)
			}
			if s.Kind != DeleteWorkspace || ws.Terminating || ws.DeletionRequestedAt != nil {
				return nil
			}
			annotations[v1alpha1.DeletionRequestedAtAnnotation] = tenancy.RequestedAt(s.At).Format(time.RFC3339)
			return nil
		})
		return err
	})
}

func (a *Applier) entry(ctx context.Context, s Step) error {
	remove := func(tenancy.Org) error {
		e, ok := a.Views.CatalogEntryIn(s.Org, s.Object)
		if !ok {
			return notThere("the catalog entry")
		}
		return a.write(s, func() error { return a.Store.DeleteCatalogEntry(ctx, e, nil) })
	}
	if s.Org == "" {
		return remove(tenancy.Org{})
	}
	return a.within(ctx, s, remove)
}
