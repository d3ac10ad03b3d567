package identity

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth/oidctest"
	"github.com/faroshq/kedge-hub/pkg/server"
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
