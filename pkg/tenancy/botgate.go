package tenancy

import (
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// botKeyPrefix begins the keys of Bots among callers. No User can have such a name.
const botKeyPrefix = "bot:"

// BotKey is the key of a Bot as a caller. account is the UID of its ServiceAccount: the
// tokens of an account that was replaced are another caller's.
func BotKey(account string) string { return botKeyPrefix + account }

// BotAccountOf returns the UID of the ServiceAccount in a key that BotKey made. ok is false
// for a User.
func BotAccountOf(key string) (account string, ok bool) { return strings.CutPrefix(key, botKeyPrefix) }

// BotUsername is the username of a Bot in kcp.
func BotUsername(name string) string { return "system:serviceaccount:" + DefaultNamespace + ":" + name }

// NotABot is the answer to a token of a ServiceAccount that no Bot lists.
func NotABot() error {
	return errs.New(errs.Unauthenticated, "no bot of this workspace has this token, or not any more; make a bot and issue a token for it: kedge bots create, kedge bots tokens create")
}

// BotToken is what a genuine token of a ServiceAccount says.
type BotToken struct {
	// Cluster is the logical cluster of the account, Namespace, Name and Account (its UID)
	// the account.
	Cluster, Namespace, Name, Account string
	// Secret is the UID of the Secret that the token is bound to.
	Secret string
}

// ScopedBot is a Bot with the Workspace that it is for.
type ScopedBot struct {
	Bot       *v1alpha1.Bot
	Org       Org
	Workspace Workspace
	// Token is the ID of the token that was presented. It is empty where none was.
	Token string
}

// BotGate decides whether a Bot may access a logical cluster. Its funcs read caches.
type BotGate struct {
	Tree Tree
	// Bot finds a Bot by the UID of its ServiceAccount, and its Organization.
	Bot       func(account string) (b *v1alpha1.Bot, org Org, ok bool)
	Workspace func(org, workspace string) (Workspace, bool)
	// Issuers are the identity providers whose jobs Bots may trust.
	Issuers []string
}

// Check returns the Bot that lists a token, and when the token ends by the list. It refuses
// every other token with the answer of NotABot, and with Forbidden the token of a Bot whose
// Workspace or Organization is soft-deleted (O-13), or whose role was lowered while kcp may still
// allow more (O-14).
func (g BotGate) Check(t BotToken, now time.Time) (place ScopedBot, until time.Time, err error) {
	place, err = g.find(t.Account)
	if err != nil {
		return ScopedBot{}, time.Time{}, err
	}
	b := place.Bot
	i := slices.IndexFunc(b.Spec.Tokens, func(held v1alpha1.BotToken) bool { return held.SecretUID != "" && held.SecretUID == t.Secret })
	if i < 0 || t.Namespace != DefaultNamespace || t.Name != b.Name || t.Cluster == "" || t.Cluster != place.Workspace.ClusterID ||
		!now.Before(b.Spec.Tokens[i].ExpiresAt.Time) || !Trusted(b, b.Spec.Tokens[i], g.Issuers) {
		return ScopedBot{}, time.Time{}, NotABot()
	}
	place.Token = b.Spec.Tokens[i].ID
	return place, b.Spec.Tokens[i].ExpiresAt.Time, place.err()
}

// find finds the Bot whose tokens are accepted under an account.
func (g BotGate) find(account string) (ScopedBot, error) {
	b, org, ok := g.Bot(account)
	if !ok || account == "" || !AccountReady(b) || !b.Spec.Role.AtLeast(v1alpha1.RoleViewer) || b.Status.ServiceAccountUID != account || org.Organization == nil {
		return ScopedBot{}, NotABot()
	}
	ws, ok := g.Workspace(org.UUID(), b.Spec.WorkspaceRef.Name)
	if !ok {
		return ScopedBot{}, NotABot()
	}
	return ScopedBot{Bot: b, Org: org, Workspace: ws}, nil
}

// err refuses access to a Workspace that is soft-deleted, and to a Bot that kcp may allow more than
// its role.
func (p ScopedBot) err() error {
	switch {
	case p.Org.Deleted() || p.Workspace.Deleted():
		return errs.New(errs.Forbidden, Gone(p.Org, &p.Workspace))
	case RoleLowered(p.Bot):
		return RoleTooLow("the role of this bot was lowered to " + string(p.Bot.Spec.Role) + ", and kcp still allows it more; its tokens are refused until kcp follows, and its condition " + v1alpha1.ConditionRoleEnforced + " says what keeps kcp from it")
	}
	return nil
}

// Enter returns the access of the Bot with a ServiceAccount to the logical cluster that
// cluster, an ID or a path, refers to: to that of its own Workspace and to no other. It does
// not look at tokens.
func (g BotGate) Enter(account, cluster string) (Entry, error) {
	place, err := g.find(account)
	if err != nil {
		return Entry{}, err
	}
	ws := place.Workspace
	if ws.ClusterID == "" || cluster != ws.ClusterID && cluster != g.Tree.Workspace(place.Org.UUID(), ws.UUID) {
		return Entry{}, NotABot()
	}
	return Entry{Workspace: ws, Role: place.Bot.Spec.Role}, place.err()
}
