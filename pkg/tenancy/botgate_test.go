package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	botOrg       = "11111111-1111-4111-8111-111111111111"
	botWorkspace = "22222222-2222-4222-8222-222222222222"
)

// botWorld is a Bot with one token, in a Workspace whose logical cluster is "cluster".
type botWorld struct {
	bot *v1alpha1.Bot
	org tenancy.Org
	ws  tenancy.Workspace
}

func newBotWorld() *botWorld {
	w := &botWorld{bot: readyBot(botToken("t", "secret", time.Hour, time.Hour))}
	w.bot.Spec.WorkspaceRef.Name = botWorkspace
	w.org = tenancy.Org{Organization: tenancy.NewOrganization(botOrg, "Acme", "alice"), ClusterID: "org"}
	w.ws = tenancy.Workspace{UUID: botWorkspace, OrgUUID: botOrg, ClusterID: "cluster", KCPReady: true}
	return w
}

func (w *botWorld) gate(t testing.TB) tenancy.BotGate {
	t.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	return tenancy.BotGate{
		Tree: tree,
		Bot:  func(account string) (*v1alpha1.Bot, tenancy.Org, bool) { return w.bot, w.org, account == "account" },
		Workspace: func(org, workspace string) (tenancy.Workspace, bool) {
			return w.ws, org == botOrg && workspace == botWorkspace
		},
	}
}

func goodToken() tenancy.BotToken {
	return tenancy.BotToken{Cluster: "cluster", Namespace: "default", Name: "bot", Account: "account", Secret: "secret"}
}

func TestBotGate_letsInWhatTheBotLists(t *testing.T) {
	t.Parallel()
	g := newBotWorld().gate(t)
	place, until, err := g.Check(goodToken(), botTime)
	require.NoError(t, err)
	require.Equal(t, "bot", place.Bot.Name)
	require.Equal(t, botTime.Add(time.Hour), until)
	for _, cluster := range []string{"cluster", "root:kedge:orgs:" + botOrg + ":" + botWorkspace} {
		entry, err := g.Enter("account", cluster)
		require.NoError(t, err)
		require.Equal(t, v1alpha1.RoleMember, entry.Role)
		require.Equal(t, "cluster", entry.Workspace.ClusterID)
		require.False(t, entry.Sudo)
	}
}

func TestBotGate_refusesEveryOtherToken(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(botTime)
	for name, edit := range map[string]func(*botWorld, *tenancy.BotToken){
		"of another account":       func(_ *botWorld, k *tenancy.BotToken) { k.Account = "other" },
		"of no account":            func(_ *botWorld, k *tenancy.BotToken) { k.Account = "" },
		"of another name":          func(_ *botWorld, k *tenancy.BotToken) { k.Name = "mine" },
		"of another namespace":     func(_ *botWorld, k *tenancy.BotToken) { k.Namespace = "mine" },
		"of another cluster":       func(_ *botWorld, k *tenancy.BotToken) { k.Cluster = "mine" },
		"bound to another Secret":  func(_ *botWorld, k *tenancy.BotToken) { k.Secret = "mine" },
		"bound to no Secret":       func(w *botWorld, k *tenancy.BotToken) { k.Secret, w.bot.Spec.Tokens[0].SecretUID = "", "" },
		"revoked":                  func(w *botWorld, _ *tenancy.BotToken) { w.bot.Spec.Tokens = nil },
		"all revoked":              func(w *botWorld, _ *tenancy.BotToken) { w.bot.Spec.Generation++ },
		"expired by the list":      func(w *botWorld, _ *tenancy.BotToken) { w.bot.Spec.Tokens[0].ExpiresAt = now },
		"of an account replaced":   func(w *botWorld, _ *tenancy.BotToken) { w.bot.Status.ServiceAccountUID = "newer" },
		"of a bot being deleted":   func(w *botWorld, _ *tenancy.BotToken) { w.bot.DeletionTimestamp = &now },
		"of a workspace not known": func(w *botWorld, _ *tenancy.BotToken) { w.bot.Spec.WorkspaceRef.Name = "other" },
		"of an org not known":      func(w *botWorld, _ *tenancy.BotToken) { w.org.Organization = nil },
		"of a cluster not placed":  func(w *botWorld, k *tenancy.BotToken) { w.ws.ClusterID, k.Cluster = "", "" },
	} {
		w, token := newBotWorld(), goodToken()
		edit(w, &token)
		_, _, err := w.gate(t).Check(token, botTime)
		require.True(t, errs.Is(err, errs.Unauthenticated), "%s: %v", name, err)
		require.Equal(t, tenancy.NotABot().Error(), err.Error(), name)
	}
}

func TestBotGate_leadsToItsOwnWorkspaceAlone(t *testing.T) {
	t.Parallel()
	g := newBotWorld().gate(t)
	for _, cluster := range []string{
		"other", "org", "", "root", "root:kedge", "root:kedge:orgs", "root:kedge:orgs:" + botOrg,
		"root:kedge:orgs:" + botOrg + ":" + botOrg,
	} {
		_, err := g.Enter("account", cluster)
		require.True(t, errs.Is(err, errs.Unauthenticated), cluster)
	}
	_, err := g.Enter("other", "cluster")
	require.True(t, errs.Is(err, errs.Unauthenticated))
}

func TestBotGate_isShutWhileTheWorkspaceIsDeleted(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(botTime)
	for name, edit := range map[string]func(*botWorld){
		"the workspace":    func(w *botWorld) { w.ws.DeletionRequestedAt = &now },
		"the organization": func(w *botWorld) { w.org.Status.DeletionRequestedAt = &now },
		"for good":         func(w *botWorld) { w.ws.Terminating = true },
	} {
		w := newBotWorld()
		edit(w)
		_, _, err := w.gate(t).Check(goodToken(), botTime)
		require.True(t, errs.Is(err, errs.Forbidden), name)
		_, err = w.gate(t).Enter("account", "cluster")
		require.True(t, errs.Is(err, errs.Forbidden), name)
	}
}

// A role that was lowered refuses the tokens from the write of the Bot until kcp has followed.
func TestBotGate_isShutWhileKcpMayAllowMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role, authorized v1alpha1.Role
		open             bool
	}{
		"as it is":              {v1alpha1.RoleMember, v1alpha1.RoleMember, true},
		"raised":                {v1alpha1.RoleAdmin, v1alpha1.RoleMember, true},
		"raised, and recorded":  {v1alpha1.RoleAdmin, v1alpha1.RoleAdmin, true},
		"lowered":               {v1alpha1.RoleMember, v1alpha1.RoleAdmin, false},
		"lowered, to look only": {v1alpha1.RoleViewer, v1alpha1.RoleMember, false},
	} {
		w := newBotWorld()
		w.bot.Spec.Role, w.bot.Status.AuthorizedRole = c.role, c.authorized
		_, _, checked := w.gate(t).Check(goodToken(), botTime)
		_, entered := w.gate(t).Enter("account", "cluster")
		for _, err := range []error{checked, entered} {
			require.Equal(t, !c.open, errs.Is(err, errs.Forbidden), "%s: %v", name, err)
			require.Equal(t, c.open, err == nil, name)
		}
	}
}

func TestBotKey_isNoNameOfAUser(t *testing.T) {
	t.Parallel()
	account, ok := tenancy.BotAccountOf(tenancy.BotKey("uid"))
	require.True(t, ok)
	require.Equal(t, "uid", account)
	_, ok = tenancy.BotAccountOf("bot-alice")
	require.False(t, ok)
	for _, name := range tenancy.UserNames("issuer", "subject", "bot:uid", "") {
		require.NotContains(t, name, ":")
	}
}
