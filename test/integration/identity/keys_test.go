package identity

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The operator adds a new session key as the last one, moves it to the front when all replicas have it, and drops the
// old one when the sessions have been refreshed. Sessions go on all the time. A replica that does not have the key that
// another one seals with, because it was put in front at once, ends nothing, and does not say that it did.
func TestSessionKeys_rotateWhileSessionsGoOn(t *testing.T) {
	t.Parallel()
	keys := []string{}
	for range 2 {
		key := make([]byte, 32)
		_, err := rand.Read(key)
		require.NoError(t, err)
		keys = append(keys, base64.StdEncoding.EncodeToString(key))
	}
	root, external := framework.NewRoot(), ""
	replica := func(keys ...string) *framework.Hub {
		file := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600))
		hub := framework.StartHub(t, kcp, root, framework.WithDex(t, hasty), func(o *server.Options) {
			if external == "" {
				external = "https://" + o.ListenAddress
			}
			o.ExternalURL, o.Sessions.KeyFile = external, file
		})
		ready(t, hub, hasty.IDToken(t, framework.HubClient, "alice"))
		return hub
	}
	old := replica(keys[0])
	first := hasty.LogInAt(t, old.Client, "alice")
	unrefreshed := hasty.LogInAt(t, old.Client, "alice")
	expiry := time.Unix(framework.Claims(t, unrefreshed.Access).Expiry, 0)

	added, both := replica(keys...), replica(keys[1], keys[0])
	// After half of the lifetime the hub asks Dex for a newer token, and encrypts what Dex gives.
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(time.Until(expiry) < hastyTokens/2-2*time.Second, "the token of the login is still good for long")
	})
	next := framework.TokensOf(t, both.Refresh(t, first.Secret))
	both.Do(t, whoIs(next.Access), http.StatusOK)
	require.Equal(t, "invalid_grant", old.Refresh(t, next.Secret).Text("error"), "the old key alone does not verify it")
	for path, form := range map[string]url.Values{
		// The grant of the person is encrypted with the new key.
		"/auth/token":  {"grant_type": {"refresh_token"}, "refresh_token": {unrefreshed.Secret}},
		"/auth/revoke": {"token": {next.Secret}},
	} {
		a, err := old.TryForm(path, form)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, a.Code, "%s: %s", path, a.Raw)
		require.NotEmpty(t, a.Header.Get("Retry-After"))
	}
	framework.TokensOf(t, both.Refresh(t, next.Secret))

	renewed := replica(keys[1])
	newest := framework.TokensOf(t, renewed.Refresh(t, next.Secret))
	renewed.Do(t, whoIs(newest.Access), http.StatusOK)
	refusal := renewed.Refresh(t, unrefreshed.Secret)
	require.Equal(t, http.StatusBadRequest, refusal.Code, "%s", refusal.Raw)
	require.Equal(t, "invalid_grant", refusal.Text("error"))

	// Replicas that are one step apart take each other's secrets.
	oldest := framework.TokensOf(t, added.Refresh(t, unrefreshed.Secret))
	framework.TokensOf(t, both.Refresh(t, oldest.Secret))
	framework.TokensOf(t, added.Refresh(t, newest.Secret))
}
