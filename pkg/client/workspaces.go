package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// InWorkspace has the requests about one workspace.
type InWorkspace struct{ tenant }

// Workspace returns the requests about the workspace with the UUID. It sends none.
func (o Org) Workspace(uuid string) InWorkspace {
	r := o.at(http.MethodGet, "/workspaces"+segment(uuid), nil)
	r.Workspace = uuid
	return InWorkspace{tenant{o.c, r}}
}

// Get returns the workspace.
func (w InWorkspace) Get(ctx context.Context) (*Workspace, error) {
	return call[Workspace](ctx, w.c, w.at(http.MethodGet, "", nil))
}

// Rename changes the display name.
func (w InWorkspace) Rename(ctx context.Context, displayName string, options ...Option) (*Workspace, error) {
	return call[Workspace](ctx, w.c, w.at(http.MethodPatch, "", named(displayName)), options...)
}

// Delete requests the deletion of the workspace with all that is in it.
func (w InWorkspace) Delete(ctx context.Context, options ...Option) (*Workspace, error) {
	return call[Workspace](ctx, w.c, w.at(http.MethodDelete, "", nil), options...)
}

// Undelete withdraws the request.
func (w InWorkspace) Undelete(ctx context.Context) (*Workspace, error) {
	return call[Workspace](ctx, w.c, w.at(http.MethodPost, "/undelete", nil))
}

// RemoveMember ends a membership.
func (w InWorkspace) RemoveMember(ctx context.Context, user string, options ...Option) error {
	return w.remove(ctx, "/members"+segment(user), false, options)
}

// Leave ends the caller's own membership.
func (w InWorkspace) Leave(ctx context.Context) error {
	return w.remove(ctx, "/memberships/me", false, nil)
}

// Kubeconfig returns a kubeconfig that gets its tokens from kedge credential. It holds none.
func (w InWorkspace) Kubeconfig(ctx context.Context) ([]byte, error) {
	a, err := w.c.Do(ctx, w.at(http.MethodGet, "/kubeconfig", nil))
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}

// Bots lists the bots.
func (w InWorkspace) Bots(ctx context.Context) iter.Seq2[Bot, error] {
	return List[Bot](ctx, w.c, w.at("", botsPath, nil))
}

const botsPath = "/serviceaccounts"

// CreateBot makes a bot.
func (w InWorkspace) CreateBot(ctx context.Context, displayName string, role Role, options ...Option) (*Bot, error) {
	body := map[string]any{"displayName": displayName, "role": role}
	return create(ctx, w.c, w.at(http.MethodPost, botsPath, body), options,
		func(b *Bot) Request { return w.at(http.MethodGet, botsPath+segment(b.UUID), nil) },
		func(b *Bot) bool { return b.Phase == PhaseReady })
}

// Bot returns a bot.
func (w InWorkspace) Bot(ctx context.Context, uuid string) (*Bot, error) {
	return call[Bot](ctx, w.c, w.at(http.MethodGet, botsPath+segment(uuid), nil))
}

// UpdateBot changes a bot. Its living tokens have a new role at once.
func (w InWorkspace) UpdateBot(ctx context.Context, uuid string, change BotPatch, options ...Option) (*Bot, error) {
	return call[Bot](ctx, w.c, w.at(http.MethodPatch, botsPath+segment(uuid), change), options...)
}

// DeleteBot deletes a bot with its tokens.
func (w InWorkspace) DeleteBot(ctx context.Context, uuid string, options ...Option) error {
	return w.c.do(ctx, w.at(http.MethodDelete, botsPath+segment(uuid), nil), options...)
}

// BotTokens lists the living tokens of a bot, without the tokens themselves.
func (w InWorkspace) BotTokens(ctx context.Context, bot string) iter.Seq2[BotToken, error] {
	return List[BotToken](ctx, w.c, w.at("", botsPath+segment(bot)+"/tokens", nil))
}

// IssueBotToken issues a token. A life of 0 is what the hub gives by default. It is not repeated:
// the hub answers the same IdempotencyKey with 409, and never with the token again.
func (w InWorkspace) IssueBotToken(ctx context.Context, bot, name string, life time.Duration, options ...Option) (*BotToken, error) {
	body := map[string]any{}
	if name != "" {
		body["name"] = name
	}
	if life > 0 {
		body["expirationSeconds"] = int64(life / time.Second)
	}
	return call[BotToken](ctx, w.c, w.at(http.MethodPost, botsPath+segment(bot)+"/tokens", body), options...)
}

// RevokeBotToken ends one token.
func (w InWorkspace) RevokeBotToken(ctx context.Context, bot, id string) error {
	return w.c.do(ctx, w.at(http.MethodDelete, botsPath+segment(bot)+"/tokens"+segment(id), nil))
}

// RevokeBotTokens ends all tokens of a bot.
func (w InWorkspace) RevokeBotTokens(ctx context.Context, bot string) error {
	return w.c.do(ctx, w.at(http.MethodDelete, botsPath+segment(bot)+"/tokens", nil))
}
