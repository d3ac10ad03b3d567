package identity

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The operator puts a new session key before the old one, replica by replica, and drops the old
// one when the sessions have been refreshed. Sessions go on all the time.
func TestSessionKeys_rotateWhileSessionsGoOn(t *testing.T) {
	t.Parallel()
	keys := []string{}
	for range 2 {
		key := make([]byte, 32)
		_, err := rand.Read(key)
		require.NoError(t, err)
		keys = append(keys, base64.StdEncoding.EncodeToString(key))
	}
	root, url := framework.NewRoot(), ""
	replica := func(keys ...string) *framework.Hub {
		file := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600))
		hub := framework.StartHub(t, kcp, root, framework.WithDex(t, hasty), func(o *server.Options) {
			if url == "" {
				url = "https://" + o.ListenAddress
			}
			o.ExternalURL, o.Sessions.KeyFile = url, file
		})
		ready(t, hub, hasty.IDToken(t, framework.HubClient, "alice"))
		return hub
	}
	old := replica(keys[0])
	first := hasty.LogInAt(t, old.Client, "alice")
	unrefreshed := hasty.LogInAt(t, old.Client, "alice")
	expiry := time.Unix(framework.Claims(t, unrefreshed.Access).Expiry, 0)

	both := replica(keys[1], keys[0])
	// After half of the lifetime the hub asks Dex for a newer token, and encrypts what Dex gives.
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(time.Until(expiry) < hastyTokens/2-2*time.Second, "the token of the login is still good for long")
	})
	next := framework.TokensOf(t, both.Refresh(t, first.Secret))
	both.Do(t, whoIs(next.Access), http.StatusOK)
	require.Equal(t, "invalid_grant", old.Refresh(t, next.Secret).Text("error"), "the old key alone does not verify it")
	framework.TokensOf(t, both.Refresh(t, next.Secret))

	renewed := replica(keys[1])
	renewed.Do(t, whoIs(framework.TokensOf(t, renewed.Refresh(t, next.Secret)).Access), http.StatusOK)
	refusal := renewed.Refresh(t, unrefreshed.Secret)
	require.Equal(t, http.StatusBadRequest, refusal.Code, "%s", refusal.Raw)
	require.Equal(t, "invalid_grant", refusal.Text("error"))
	framework.TokensOf(t, both.Refresh(t, unrefreshed.Secret))
}
