package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/accounts"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// botTokens has kcp issue tokens of bots, for the audiences that it accepts.
type botTokens struct {
	store    *store.Store
	accounts *accounts.Accounts
}

// Issue implements bots.Tokens.
func (t botTokens) Issue(ctx context.Context, cluster string, b *v1alpha1.Bot, id string, life time.Duration) (token, secretUID string, err error) {
	audiences, err := t.accounts.Audiences()
	if err != nil {
		return "", "", err
	}
	issued, err := t.store.IssueBotToken(ctx, cluster, b, id, life, audiences)
	return issued.Token, issued.SecretUID, err
}

// Discard implements bots.Tokens.
func (t botTokens) Discard(ctx context.Context, cluster string, b *v1alpha1.Bot, id string) error {
	return t.store.DiscardBotToken(ctx, cluster, b, id)
}

// bots returns the handler of bots.
func (p routes) bots(scopes httpmw.Scopes) *bots.Handler {
	c := p.config
	return &bots.Handler{
		Views: p.views, Store: p.store, Tokens: botTokens{p.store, p.accounts},
		Recheck:        func(b *v1alpha1.Bot) { p.recheck(tenancy.BotKey(b.Status.ServiceAccountUID)) },
		WorkspaceScope: scopes.Workspace, NewUUID: uuid.NewString, Clock: p.clock, ExternalURL: c.ExternalURL, CA: p.ca,
		MaxTokenTTL: c.Bots.TokenMaxTTL, CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
	}
}
