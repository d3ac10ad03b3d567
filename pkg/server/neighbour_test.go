package server

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// claiming is a token with another text in its claims, and with the signature of the token.
func claiming(t *testing.T, token, old, text string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.Contains(t, string(payload), old)
	return parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), old, text, 1))) + "." + parts[2]
}

// The jobs of a company have one address, and each gets a new token. A neighbour there floods the hub with tokens
// that it forged.
func TestBots_aNeighbourLocksOutNoFreshToken(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	s.hub.config.Limits.FailedAuthenticationsPerPeer = 0.1
	bot := tenancy.NewBot("ci", "w", "CI", v1alpha1.RoleMember, "alice", "hash")
	bot.Status.ServiceAccountUID = "account"
	bot.Spec.Tokens = []v1alpha1.BotToken{{ID: "t", SecretUID: "secret", ExpiresAt: metav1.NewTime(s.now().Add(time.Hour))}}
	org := tenancy.Org{Organization: tenancy.NewOrganization("o", "Acme", "alice"), ClusterID: "org"}
	bots, err := s.bots(tenancy.BotGate{
		Bot: func(account string) (*v1alpha1.Bot, tenancy.Org, bool) { return bot, org, account == "account" },
		Workspace: func(string, string) (tenancy.Workspace, bool) {
			return tenancy.Workspace{UUID: "w", OrgUUID: "o", ClusterID: "abc", KCPReady: true}, true
		},
	})
	require.NoError(t, err)
	fresh := s.token(time.Hour)
	for name, forged := range map[string]string{
		"another secret":  claiming(t, fresh, `"uid":"secret"`, `"uid":"guess"`),
		"another account": claiming(t, fresh, `"uid":"account"`, `"uid":"guess"`),
		"another cluster": claiming(t, fresh, `"abc"`, `"def"`),
		"another issuer":  claiming(t, fresh, `https://kcp.default.svc`, `https://evil.example.com`),
		"no token":        "x",
	} {
		for range 5 {
			_, ok, err := bots.Tokens.Authenticate(t.Context(), forged)
			require.False(t, ok, name)
			if errs.Is(err, errs.TooManyRequests) {
				break
			}
		}
		_, _, err = bots.Tokens.Authenticate(t.Context(), forged)
		require.True(t, errs.Is(err, errs.TooManyRequests), "%s: %v", name, err)
	}
	_, ok, err := bots.Tokens.Authenticate(t.Context(), claiming(t, fresh, `"name":"kedge-bot-token-1"`, `"name":"x"`))
	require.True(t, errs.Is(err, errs.Unauthenticated), "what a holder of the token forges is verified: %v", err)
	require.False(t, ok)
	_, ok, err = bots.Tokens.Authenticate(t.Context(), fresh)
	require.NoError(t, err)
	require.True(t, ok)

	bot.Spec.Tokens = nil
	_, _, err = bots.Tokens.Authenticate(t.Context(), s.token(30*time.Minute))
	require.True(t, errs.Is(err, errs.TooManyRequests), "a token that was revoked: %v", err)
}
