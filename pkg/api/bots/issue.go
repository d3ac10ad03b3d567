package bots

import (
	"context"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Changer changes Bots by compare-and-swap.
type Changer interface {
	ChangeBot(ctx context.Context, held *v1alpha1.Bot, match api.Match, edit api.Edit[*v1alpha1.Bot]) (*v1alpha1.Bot, error)
}

// issuing issues tokens.
type issuing struct {
	bots   Changer
	tokens Tokens
}

// issue adds the token to the list of the Bot with list, requests it from kcp, and records the Secret
// that it is bound to. Only then does the hub accept the token. If the error of entitled, which is asked
// after that with the Bot that lists it, is not nil, the token is thrown away.
func (i issuing) issue(ctx context.Context, cluster string, b *v1alpha1.Bot, t v1alpha1.BotToken, life time.Duration,
	list api.Edit[*v1alpha1.Bot], entitled func(context.Context, *v1alpha1.Bot) error,
) (token string, err error) {
	listed, err := i.bots.ChangeBot(ctx, b, nil, list)
	if err != nil {
		return "", missing(err)
	}
	token, secret, err := i.tokens.Issue(ctx, cluster, listed, t.ID, life)
	var bound *v1alpha1.Bot
	if err == nil {
		bound, err = i.bots.ChangeBot(ctx, listed, nil, func(_ context.Context, b *v1alpha1.Bot) error {
			if held, _ := tenancy.FindToken(b.Spec.Tokens, t.ID); held.SecretUID == secret {
				return nil
			}
			tokens, ok := tenancy.BindToken(b, t.ID, listed.Status.ServiceAccountUID, secret)
			if !ok {
				return errs.New(errs.Conflict, "the token was revoked while it was being issued; repeat the request")
			}
			b.Spec.Tokens = tokens
			return nil
		})
	}
	if err == nil {
		err = entitled(ctx, bound)
	}
	if err != nil {
		i.forget(ctx, cluster, listed, t.ID)
		return "", missing(err)
	}
	return token, nil
}

// forget removes a token that could not be issued from the list. If that fails, the bot
// controller removes it.
func (i issuing) forget(ctx context.Context, cluster string, b *v1alpha1.Bot, id string) {
	_, _ = i.bots.ChangeBot(ctx, b, nil, func(_ context.Context, b *v1alpha1.Bot) error {
		without(b, id)
		return nil
	})
	_ = i.tokens.Discard(ctx, cluster, b, id)
}
