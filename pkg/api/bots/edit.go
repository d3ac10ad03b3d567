package bots

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// errRaised is the error of a change in which the role turns out to be raised.
var errRaised = errs.New(errs.Conflict, "the role of the bot was changed at the same time; read it again and repeat the request")

// decide has the Organization accept a change that gives rights to a Bot, by compare-and-swap. The
// reconciler of the Organization carries it out. match is called with the version of the Bot that
// the decision saw.
func (h *Handler) decide(ctx context.Context, scope *tenancy.Scope, by httpmw.Author, c v1alpha1.BotChange, match api.Match) (generation int64, err error) {
	c.Workspace, c.By = scope.Workspace.UUID, scope.User
	c.RequestedAt = tenancy.DecisionTime(h.Clock.Now())
	var held *v1alpha1.Bot
	var judge api.Match
	if match != nil {
		judge = func(string) error { return match(held.ResourceVersion) }
	}
	o, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, judge, func(ctx context.Context, o *v1alpha1.Organization) (err error) {
		if c.ValidUntil, err = by.JudgeUntil(ctx, o); err != nil {
			return err
		}
		if held, err = h.KCP.GetBot(ctx, scope.Org.ClusterID, c.Name); err != nil {
			return err
		}
		changes, err := tenancy.DecideBot(o, held, c)
		if changes != nil {
			o.Spec.BotChanges = changes
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return o.Generation, nil
}

// settled removes the accepted creation of a Bot that exists from the Organization. A leader that stopped
// after it made the Bot has left it there, and the next one would make the Bot again.
func (h *Handler) settled(ctx context.Context, scope *tenancy.Scope, name string) error {
	_, err := h.Store.ChangeOrganization(ctx, scope.Org.Organization, nil, func(_ context.Context, o *v1alpha1.Organization) error {
		o.Spec.BotChanges = tenancy.WithoutCreation(o, name)
		return nil
	})
	return err
}

// change changes the role or the display name of a Bot. A change that raises the role is a grant.
// Any other is one write of the Bot, and nothing waits for it.
func (h *Handler) change(ctx context.Context, r *http.Request, scope *tenancy.Scope, by httpmw.Author, b *v1alpha1.Bot, wanted edit, match api.Match,
) (*v1alpha1.Bot, error) {
	raises := func(b *v1alpha1.Bot) bool { return wanted.role != nil && tenancy.RaisesBot(b, *wanted.role) }
	if !raises(b) {
		changed, err := h.Store.ChangeBot(ctx, b, match, func(_ context.Context, b *v1alpha1.Bot) error {
			if raises(b) {
				return errRaised
			}
			tenancy.SetBotRole(b, ptr.Deref(wanted.role, b.Spec.Role))
			b.Spec.DisplayName = ptr.Deref(wanted.name, b.Spec.DisplayName)
			return nil
		})
		if !errors.Is(err, errRaised) {
			return changed, err
		}
	}
	role := *wanted.role
	generation, err := h.decide(ctx, scope, by, v1alpha1.BotChange{Name: b.Name, UID: b.UID, Role: role, DisplayName: ptr.Deref(wanted.name, "")}, match)
	if err != nil {
		return nil, err
	}
	changed, done, err := h.carriedOut(ctx, r, scope, b, generation)
	if err == nil && done && changed.Spec.Role != role {
		err = errRaised
	}
	if err != nil {
		return nil, err
	}
	return changed, nil
}
