package identity

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// Rights in kcp are bound to usernames, so the hub serves nobody whom kcp knows by another one.
func TestUsernames_thatKCPDerivesOtherwiseAreRefused(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), func(o *server.Options) { o.OIDC.UsernamePrefix = "other:" })
	framework.SignUp(t, hub, "alice")
	token := dex.IDToken(t, framework.HubClient, "alice")
	var a framework.Answer
	framework.Eventually(t, framework.Long, func() (err error) {
		if a, err = hub.Try(whoIs(token)); err == nil {
			err = framework.Equal(http.StatusForbidden, a.Code)
		}
		return err
	})
	require.NotContains(t, string(a.Raw), "kedge:", "what kcp says is for the operator")
	details, err := framework.Readiness(hub.Metrics)
	require.NoError(t, err)
	require.Contains(t, string(details.Raw), "--authentication-config")
	framework.SignUp(t, hub, "bob")
}

// kcp may not have reached its issuer yet, so a token that it does not accept is 503.
func TestUsernames_ofAnIssuerThatKCPLacksAreUnavailable(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t, oidctest.Options{})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, issuer.CA(), 0o600))
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) {
		o.OIDC.IssuerURL, o.OIDC.ClientID, o.OIDC.CAFile = issuer.URL(), oidctest.ClientID, ca
	})
	framework.SignUp(t, hub, "alice")
	framework.Eventually(t, framework.Long, func() error {
		details, err := framework.Readiness(hub.Metrics)
		if err != nil {
			return err
		}
		hub.Do(t, whoIs(issuer.Token(nil)), http.StatusServiceUnavailable)
		return framework.Check(strings.Contains(string(details.Raw), "does not accept its tokens"), "%s", details.Raw)
	})
}

// kcp has other rows for the tokens of bob and carol than the hub, and alice's own. That alice's matches
// admits nobody else.
func TestUsernames_ofEveryStaticTokenAreCompared(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	write := func(rows ...string) {
		require.NoError(t, os.WriteFile(tokens+".next", []byte(strings.Join(rows, "\n")+"\n"), 0o600))
		require.NoError(t, os.Rename(tokens+".next", tokens))
	}
	row := func(token, user, groups string) string {
		return framework.Token(token) + "," + user + ",uid-" + user + "," + groups
	}
	write(row("alice", "alice", "dev"), row("bob", "dave", "dev"), row("carol", "carol", ""))
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.TokenFile = tokens })
	is := func(token string, code int) framework.Answer { return hub.Do(t, whoIs(framework.Token(token)), code) }
	require.Equal(t, "alice", is("alice", http.StatusOK).Text("name"))
	is("bob", http.StatusForbidden)
	require.NotContains(t, string(is("carol", http.StatusForbidden).Raw), "dev", "what kcp says is for the operator")
	details, err := framework.Readiness(hub.Metrics)
	require.NoError(t, err)
	require.Contains(t, string(details.Raw), "--token-auth-file")
	require.Contains(t, string(details.Raw), "dave")

	// The operator corrects the rows. Nobody restarts the hub.
	write(row("alice", "alice", "dev"), row("bob", "bob", "dev"), row("carol", "carol", "dev"))
	for _, name := range []string{"bob", "carol"} {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(whoIs(framework.Token(name)))
			if err == nil {
				err = framework.Equal(http.StatusOK, a.Code)
			}
			return err
		})
	}
	details, err = framework.Readiness(hub.Metrics)
	require.NoError(t, err)
	require.NotContains(t, string(details.Raw), "--token-auth-file")
}
