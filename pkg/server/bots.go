package server

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/accounts"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// pollAccepted is the interval at which kcp is asked whether it accepts a new token, and
// waitAccepted how long it is asked.
const (
	pollAccepted = 25 * time.Millisecond
	waitAccepted = 5 * time.Second
)

// withBots returns the authentication of bots in front of that of people: for the API, and for
// the proxy.
func (a *assembly) withBots(gate tenancy.BotGate, api, proxied func(http.Handler) http.Handler) (forAPI, forProxy func(http.Handler) http.Handler, err error) {
	c := a.hub.config
	tokens, err := auth.NewServiceAccounts(auth.ServiceAccountsConfig{
		Issuer: a.accounts.Issuer, Keys: a.accountKeys, Audience: tenancy.BotAudience, Clock: a.clock, Metrics: a.hub.registry,
	})
	if err != nil {
		return nil, nil, err
	}
	b := httpmw.BotAuthentication{
		Names: tokens.Names, Tokens: a.hub.limits.Authenticator(tokens, c.Limits.FailedAuthenticationsPerPeer, nil),
		Check: gate.Check, Await: a.views.AwaitBot, Clock: a.clock,
	}
	forProxy = httpmw.AuthenticateBots(b, proxied)
	b.May = httpmw.BotMay
	return httpmw.AuthenticateBots(b, api), forProxy, nil
}

// accountKeys gets the keys of the tokens of ServiceAccounts of all shards that have Workspaces.
func (a *assembly) accountKeys(ctx context.Context) ([]byte, error) {
	return a.accounts.Keys(ctx, a.accessEndpoints.Clusters()...)
}

// botTokens has kcp issue tokens of bots, for the audiences that it accepts.
type botTokens struct {
	store    *store.Store
	accounts *accounts.Accounts
	// kcp has no credential of its own.
	kcp *kcp.Clients
}

// botTokens returns what issues tokens of bots.
func (a *assembly) botTokens(s *store.Store) (botTokens, error) {
	anonymous, err := a.clients.FailFast().Anonymous()
	return botTokens{s, a.accounts, anonymous}, err
}

// Issue implements bots.Tokens. It waits until kcp accepts the token, whose own caches get the
// account, the Secret and the binding a moment later.
func (t botTokens) Issue(ctx context.Context, cluster string, b *v1alpha1.Bot, id string, life time.Duration) (token, secretUID string, err error) {
	audiences, err := t.accounts.Audiences()
	if err != nil {
		return "", "", err
	}
	issued, err := t.store.IssueBotToken(ctx, cluster, b, id, life, audiences)
	if err != nil {
		return "", "", err
	}
	_ = wait.PollUntilContextTimeout(ctx, pollAccepted, waitAccepted, true, func(ctx context.Context) (bool, error) {
		_, err := t.kcp.UsernameOf(ctx, cluster, issued.Token)
		return err == nil, nil
	})
	return issued.Token, issued.SecretUID, nil
}

// Discard implements bots.Tokens.
func (t botTokens) Discard(ctx context.Context, cluster string, b *v1alpha1.Bot, id string) error {
	return t.store.DiscardBotToken(ctx, cluster, b, id)
}

// bots returns the handler of bots.
func (p routes) bots(scopes httpmw.Scopes) *bots.Handler {
	c := p.config
	return &bots.Handler{
		Views: p.views, Store: p.store, Tokens: p.tokens, Metrics: p.botTokens,
		Recheck:        func(b *v1alpha1.Bot) { p.recheck(tenancy.BotKey(b.Status.ServiceAccountUID)) },
		WorkspaceScope: scopes.Workspace, NewUUID: uuid.NewString, Clock: p.clock, ExternalURL: c.ExternalURL, CA: p.ca,
		MaxTokenTTL: c.Bots.TokenMaxTTL, CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
	}
}
