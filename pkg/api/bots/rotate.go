package bots

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// mayRotate is the rule for a rotation: admins of the Workspace rotate every token, a bot the one that it
// presents.
func mayRotate(c *httpmw.Caller, bot, token string) func(tenancy.Scope) error {
	return func(s tenancy.Scope) error {
		if c.Bot == nil {
			return s.RequireWorkspaceAdmin("rotate tokens of bots")
		}
		if c.Bot.Bot.Name != bot || c.Bot.Token != token {
			return errs.New(errs.Forbidden, "a bot may rotate the token that it presents, and no other")
		}
		return nil
	}
}

// rotate replaces a token. The new one is complete before the old one gets its end, in one write that
// refuses if either was revoked meanwhile: a revocation of the old token is never answered before the
// new one that nobody knew of.
func (h *Handler) rotate(w http.ResponseWriter, r *http.Request) error {
	scope, old := httpmw.ScopeOf(r), chi.URLParam(r, "token")
	by, in, err := api.Begin[rest.RotateBotTokenRequest](r, h.Rights, mayRotate(httpmw.CallerOf(r), chi.URLParam(r, "sa"), old))
	if err != nil {
		return err
	}
	grace, err := tenancy.CheckRotationGrace("gracePeriodSeconds", in.GracePeriodSeconds)
	if err != nil {
		return err
	}
	key, b, err := h.keyed(r, scope)
	if err != nil {
		return err
	}
	held, ok := tenancy.FindToken(b.Spec.Tokens, old)
	if !ok {
		return tenancy.NoSuchToken()
	}
	workspace, err := h.Ready(r, scope)
	if err != nil {
		return err
	}
	t := tenancy.Successor(held, h.idFor(r, b, "tokens/"+old, key), h.MaxTokenTTL, h.Clock.Now())
	ctx, cancel, err := api.Write(r, httpmw.Intent{Facts: audit.Facts{Token: t.ID, Rotated: old, TokenExpiresAt: &t.ExpiresAt.Time}})
	if err != nil {
		return err
	}
	defer cancel()
	list := func(ctx context.Context, b *v1alpha1.Bot) error {
		if err := by.JudgeNow(ctx); err != nil {
			return err
		}
		if _, ok := tenancy.FindToken(b.Spec.Tokens, t.ID); ok && key == "" {
			// An attempt whose answer was lost has added it.
			return nil
		}
		tokens, err := tenancy.AddSuccessor(b, old, t, h.Clock.Now())
		b.Spec.Tokens = tokens
		return err
	}
	retire := func(ctx context.Context, b *v1alpha1.Bot) error {
		if err := by.JudgeNow(ctx); err != nil {
			return err
		}
		_, err := h.Store.ChangeBot(ctx, b, nil, func(_ context.Context, b *v1alpha1.Bot) error {
			tokens, err := tenancy.Rotated(b, old, t.ID, grace, h.Clock.Now())
			b.Spec.Tokens = tokens
			return err
		})
		return err
	}
	token, err := issuing{h.Store, h.Tokens}.issue(ctx, workspace.ClusterID, b, t, tenancy.LifeToIssue(t), list, retire)
	if err != nil {
		return err
	}
	return h.issued(w, r, workspace, b, t, token)
}
