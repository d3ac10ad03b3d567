package identity

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// storedAt returns the Sessions, Users and Secrets of the workspace of Users, as kcp stores
// them.
func storedAt(t *testing.T, platform framework.Platform) string {
	t.Helper()
	var all strings.Builder
	for resource, client := range map[string]rest.Interface{
		"sessions": platform.Sessions(platform.UsersPath()).GetClient(),
		"users":    platform.Users(platform.UsersPath()).GetClient(),
		"secrets":  platform.Secrets(platform.UsersPath(), "default").GetClient(),
	} {
		raw, err := client.Get().Resource(resource).SetHeader("Accept", "application/json").DoRaw(t.Context())
		require.NoError(t, err)
		all.Write(raw)
	}
	return all.String()
}

// What the hub stores about a login is of no use to a reader of its objects. A session that
// nobody uses is refused when its idle time is over, and the leader writes that it has ended.
func TestSessions_endWhenIdleAndStoreNoToken(t *testing.T) {
	t.Parallel()
	const idle = 10 * time.Second
	root, hubs := replicas(t, dex, 1, func(o *server.Options) { o.Sessions.IdleTimeout = idle })
	hub, platform := hubs[0], kcp.Platform(t, root)
	ready(t, hub, dex.IDToken(t, framework.HubClient, "bob"))
	first := dex.LogInAt(t, hub.Client, "bob")
	device := hub.Form(t, "/auth/device", url.Values{"client_id": {"kedge-cli"}})
	require.Equal(t, http.StatusOK, device.Code, "%s", device.Raw)
	second := framework.TokensOf(t, hub.Refresh(t, first.Secret))
	hub.Do(t, whoIs(second.Access), http.StatusOK)

	stored := storedAt(t, platform)
	require.Contains(t, stored, "grant-bob")
	require.Contains(t, stored, "device-")
	signature := second.Access[strings.LastIndexByte(second.Access, '.')+1:]
	for _, secret := range []string{first.Secret, second.Secret, signature, device.Text("device_code"), device.Text("user_code"), strings.ReplaceAll(device.Text("user_code"), "-", "")} {
		require.NotEmpty(t, secret)
		require.NotContains(t, stored, secret)
		require.NotContains(t, stored, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "="))
	}

	name, _, _ := strings.Cut(second.Secret, ".")
	framework.Eventually(t, framework.Long, func() error {
		s, err := platform.Sessions(platform.UsersPath()).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return framework.Check(s.Spec.EndedAt != nil && len(s.Spec.IDToken) == 0, "%+v", s.Spec)
	})
	hub.Do(t, whoIs(second.Access), http.StatusUnauthorized)
	refusal := hub.Refresh(t, second.Secret)
	require.Equal(t, http.StatusBadRequest, refusal.Code)
	require.Equal(t, "invalid_grant", refusal.Text("error"))
}
