package tenancy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

var botTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func botNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("bot-", i))
	}
	return names
}

// claimedBots returns a Workspace whose claims are as old as given.
func claimedBots(age time.Duration, names ...string) tenancy.Workspace {
	w := tenancy.Workspace{BotClaims: map[string]metav1.Time{}}
	for _, name := range names {
		w.BotClaims[name] = metav1.NewTime(botTime.Add(-age))
	}
	return w
}

func TestClaimBot_countsClaimsAndBotsOnce(t *testing.T) {
	t.Parallel()
	names := botNames(100)
	for name, c := range map[string]struct {
		workspace tenancy.Workspace
		existing  []string
		claimed   bool
		refused   bool
	}{
		"the first":                       {claimed: true},
		"the last":                        {existing: names[:99], claimed: true},
		"one too many":                    {existing: names, refused: true},
		"one too many claims":             {workspace: claimedBots(time.Second, names...), refused: true},
		"claims and bots together":        {workspace: claimedBots(time.Second, names[:60]...), existing: names[60:], refused: true},
		"a bot with its claim":            {workspace: claimedBots(time.Second, names[:50]...), existing: names[:99], claimed: true},
		"old claims":                      {workspace: claimedBots(tenancy.BotWriteTime, names...), claimed: true},
		"a claim of its own":              {workspace: claimedBots(time.Second, append([]string{"mine"}, names...)...)},
		"a bot that exists":               {existing: append([]string{"mine"}, names...)},
		"old claims of bots that are not": {workspace: claimedBots(time.Hour, names...), existing: names, refused: true},
	} {
		annotation, err := tenancy.ClaimBot(c.workspace, c.existing, "mine", botTime)
		if c.refused {
			require.True(t, errs.Is(err, errs.Forbidden), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.claimed, annotation != "", name)
		if c.claimed {
			require.Contains(t, annotation, `"mine":"2026-03-01T12:00:00Z"`, name)
		}
	}
}

func TestReleaseBot_freesThePlaceAtOnce(t *testing.T) {
	t.Parallel()
	annotation, ok, err := tenancy.ReleaseBot(claimedBots(time.Second, "mine", "other"), "mine", botTime)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, annotation, "other")
	require.NotContains(t, annotation, "mine")
	_, ok, err = tenancy.ReleaseBot(claimedBots(time.Second, "other"), "mine", botTime)
	require.NoError(t, err)
	require.False(t, ok, "nothing is written where there is no claim")
}

func TestCheckBotTokenTTL_namesTheRange(t *testing.T) {
	t.Parallel()
	const longest = 8784 * time.Hour
	for _, given := range []int64{-1, 0, 599, 8784*3600 + 1, 1 << 62} {
		_, err := tenancy.CheckBotTokenTTL("expirationSeconds", &given, longest)
		require.True(t, errs.Is(err, errs.Unprocessable), given)
		require.ErrorContains(t, err, "expirationSeconds: must be a number of seconds from 600 to 31622400")
	}
	for given, want := range map[*int64]time.Duration{
		nil: 365 * 24 * time.Hour, ptr.To[int64](600): 10 * time.Minute, ptr.To[int64](8784 * 3600): longest,
	} {
		got, err := tenancy.CheckBotTokenTTL("expirationSeconds", given, longest)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	short, err := tenancy.CheckBotTokenTTL("expirationSeconds", nil, time.Hour)
	require.NoError(t, err)
	require.Equal(t, time.Hour, short, "the default is no longer than the operator allows")
}

func botToken(id, secret string, age, life time.Duration) v1alpha1.BotToken {
	return v1alpha1.BotToken{
		ID: id, SecretUID: secret, CreatedAt: metav1.NewTime(botTime.Add(-age)), ExpiresAt: metav1.NewTime(botTime.Add(life)),
	}
}

func readyBot(tokens ...v1alpha1.BotToken) *v1alpha1.Bot {
	b := tenancy.NewBot("bot", "w", "CI", v1alpha1.RoleMember, "alice", "hash")
	b.Status.ServiceAccountUID = "account"
	b.Spec.Tokens = tokens
	return b
}

func TestAddToken_refusesWhatCannotBeIssued(t *testing.T) {
	t.Parallel()
	var full, expired []v1alpha1.BotToken
	for i := range 20 {
		full = append(full, botToken(fmt.Sprint(i), "s", time.Hour, time.Hour))
		expired = append(expired, botToken(fmt.Sprint(i), "s", time.Hour, 0))
	}
	fresh := botToken("new", "", 0, time.Hour)
	revoked, deleted := readyBot(), readyBot()
	revoked.Spec.Generation++
	deleted.DeletionTimestamp = &metav1.Time{Time: botTime}
	for name, c := range map[string]struct {
		bot  *v1alpha1.Bot
		code errs.Code
	}{
		"over the limit":      {readyBot(full...), errs.Forbidden},
		"a repetition":        {readyBot(fresh), errs.Conflict},
		"no account yet":      {tenancy.NewBot("bot", "w", "CI", v1alpha1.RoleMember, "alice", ""), errs.Conflict},
		"all being revoked":   {revoked, errs.Conflict},
		"a bot that is going": {deleted, errs.Conflict},
	} {
		_, err := tenancy.AddToken(c.bot, fresh, botTime)
		require.True(t, errs.Is(err, c.code), "%s: %v", name, err)
	}
	tokens, err := tenancy.AddToken(readyBot(expired...), fresh, botTime)
	require.NoError(t, err, "expired tokens do not count")
	require.Equal(t, []v1alpha1.BotToken{fresh}, tokens)
	tokens, err = tenancy.AddToken(readyBot(full[:19]...), fresh, botTime)
	require.NoError(t, err)
	require.Len(t, tokens, 20)
}

func TestBindToken_refusesARevokedToken(t *testing.T) {
	t.Parallel()
	b := readyBot(botToken("a", "", 0, time.Hour))
	tokens, ok := tenancy.BindToken(b, "a", "account", "secret")
	require.True(t, ok)
	require.Equal(t, "secret", tokens[0].SecretUID)
	require.Empty(t, b.Spec.Tokens[0].SecretUID, "the cached Bot is not changed")
	_, ok = tenancy.BindToken(b, "b", "account", "secret")
	require.False(t, ok, "it was revoked meanwhile")
	_, ok = tenancy.BindToken(b, "a", "an older account", "secret")
	require.False(t, ok, "its account was replaced meanwhile")
	b.Spec.Generation++
	_, ok = tenancy.BindToken(b, "a", "account", "secret")
	require.False(t, ok, "all were revoked meanwhile")
}

func TestKeptTokens_dropsWhatCannotWork(t *testing.T) {
	t.Parallel()
	b := readyBot(
		botToken("good", "s", time.Hour, time.Hour),
		botToken("expired", "s", time.Hour, 0),
		botToken("secret gone", "gone", time.Hour, time.Hour),
		botToken("being issued", "", time.Minute, time.Hour),
		botToken("never issued", "", tenancy.BotWriteTime, time.Hour),
	)
	kept := tenancy.KeptTokens(b, botTime, nil, func(id string) string {
		if id == "secret gone" {
			return ""
		}
		return "s"
	})
	var ids []string
	for _, k := range kept {
		ids = append(ids, k.ID)
	}
	require.Equal(t, []string{"good", "being issued"}, ids)
	require.Equal(t, tenancy.BotWriteTime-time.Minute, tenancy.NextTokenChange(kept, botTime))
	require.Equal(t, time.Hour, tenancy.NextTokenChange(kept[:1], botTime))
	require.Zero(t, tenancy.NextTokenChange(nil, botTime))
}

func TestBotObjects_areTheHubsAndBindOneRole(t *testing.T) {
	t.Parallel()
	b := readyBot()
	account, secret, binding := tenancy.BotAccount(b), tenancy.BotTokenSecret(b, "t"), tenancy.BotBinding(b, "account")
	for _, o := range []metav1.Object{account, secret, binding} {
		require.True(t, tenancy.ManagedByHub(o))
		require.True(t, tenancy.OfBot(o, "bot"))
		require.Equal(t, "true", o.GetLabels()["tenancy.kedge.faros.sh/kedge-sa"])
	}
	require.Equal(t, map[string]string{
		"tenancy.kedge.faros.sh/display-name": "CI", "tenancy.kedge.faros.sh/role": "member",
	}, account.Annotations)
	require.Empty(t, secret.Data)
	require.Equal(t, tenancy.ClusterRoleMember, binding.RoleRef.Name)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "bot", Namespace: "default"}}, binding.Subjects)
	id, ok := tenancy.TokenOfSecret(secret)
	require.True(t, ok)
	require.Equal(t, "t", id)

	b.Spec.Role = v1alpha1.RoleAdmin
	held := []tenancy.RBAC{binding}
	changes := tenancy.CompareRBAC(held, []tenancy.RBAC{tenancy.BotBinding(b, "account")}, false)
	require.Equal(t, tenancy.ClusterRoleAdmin, changes.Write[0].(*rbacv1.ClusterRoleBinding).RoleRef.Name)
	require.Equal(t, held, changes.Remove)
	require.Zero(t, tenancy.CompareRBAC(held, []tenancy.RBAC{tenancy.BotBinding(readyBot(), "account")}, false).Count())
	require.Len(t, tenancy.CompareRBAC(held, []tenancy.RBAC{tenancy.BotBinding(readyBot(), "account")}, true).Write, 1, "somebody asks for it")
	require.Len(t, tenancy.CompareRBAC(held, []tenancy.RBAC{tenancy.BotBinding(readyBot(), "its successor")}, false).Write, 1)
}

// The bindings of Bots are not those of people: the access controller leaves them alone.
func TestAccess_leavesTheBindingsOfBots(t *testing.T) {
	t.Parallel()
	binding := tenancy.BotBinding(readyBot(), "account")
	require.Zero(t, tenancy.AccessChanges([]tenancy.RBAC{binding}, nil).Count())
	delete(binding.Labels, v1alpha1.BotLabel)
	require.Equal(t, 1, tenancy.AccessChanges([]tenancy.RBAC{binding}, nil).Count(), "the control")
}
