package bots

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// scene is an Org of alice with a Workspace in which bob is a member.
type scene struct {
	framework.Platform
	hub              *framework.Hub
	org, ws, cluster string
}

func newScene(t testing.TB, hub *framework.Hub) scene {
	t.Helper()
	return newSceneAt(t, kcp, hub)
}

// newSceneAt is newScene for a hub in front of another kcp.
func newSceneAt(t testing.TB, k *framework.KCP, hub *framework.Hub) scene {
	t.Helper()
	s := scene{Platform: k.Platform(t, hub.Options.RootWorkspace), hub: hub}
	framework.SignUp(t, hub, "alice", "bob")
	s.org = hub.CreateOrg(t, "alice", "Acme")
	ws := hub.CreateWorkspace(t, "alice", s.org, "Build")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	hub.Do(t, s.call("alice", http.MethodPost, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	return s
}

// call is a call to a path below the Workspace.
func (s scene) call(as, method, below string, body any) call {
	return framework.InWorkspace(as, method, s.org, s.ws, below, body)
}

// bot makes a bot and returns its UUID.
func (s scene) bot(t testing.TB, role string) string {
	t.Helper()
	body := map[string]string{"displayName": "CI", "role": role}
	return s.hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts", body), http.StatusCreated).Text("uuid")
}

// token is a token of a bot with its ID.
type token struct{ id, secret string }

func (s scene) token(t testing.TB, bot string) token {
	t.Helper()
	a := s.hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds": 3600}`), http.StatusCreated)
	require.NotEmpty(t, a.Text("token"))
	return token{a.Text("id"), a.Text("token")}
}

// bearer is a header with a token.
func bearer(secret string) http.Header {
	return http.Header{"Authorization": {"Bearer " + secret}}
}

// as sends a request to the Workspace with a token and returns the code.
func (s scene) as(t testing.TB, hub *framework.Hub, secret, method, path string, body any) framework.Answer {
	t.Helper()
	a, err := hub.Try(call{Method: method, Path: "/clusters/" + s.cluster + path, Header: bearer(secret), Body: body})
	require.NoError(t, err)
	return a
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// works waits until a token opens the Workspace: kcp's own caches may be behind.
func (s scene) works(t testing.TB, hub *framework.Hub, secret string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a := s.as(t, hub, secret, http.MethodGet, configMaps, nil)
		return framework.Check(a.Code == http.StatusOK, "%d %s", a.Code, a.Raw)
	})
}

// refused requires that a token is refused within a second from began.
func (s scene) refused(t testing.TB, hub *framework.Hub, secret string, code int, began time.Time) {
	t.Helper()
	framework.Eventually(t, time.Second, func() error {
		a := s.as(t, hub, secret, http.MethodGet, configMaps, nil)
		return framework.Check(a.Code == code, "%d %s", a.Code, a.Raw)
	})
	require.Less(t, time.Since(began), framework.Long)
}

// inKCP reads the Bot from kcp.
func (s scene) inKCP(t testing.TB, bot string) *v1alpha1.Bot {
	t.Helper()
	b, err := s.Bots(s.OrgPath(s.org)).Get(t.Context(), bot, metav1.GetOptions{})
	require.NoError(t, err)
	return b
}

// left names the objects of a bot that exist in its Workspace.
func (s scene) left(t testing.TB, bot string) []string {
	t.Helper()
	var found []string
	if _, err := s.ServiceAccounts(s.cluster, "default").Get(t.Context(), bot, metav1.GetOptions{}); err == nil {
		found = append(found, "account")
	}
	bindings, err := s.BindingsIn(t, s.cluster)
	require.NoError(t, err)
	for _, b := range bindings {
		if b.Labels[v1alpha1.BotLabel] == bot {
			found = append(found, "binding to "+b.RoleRef.Name)
		}
	}
	var list corev1.SecretList
	require.NoError(t, s.Secrets(s.cluster, "default").GetClient().Get().Namespace("default").Resource("secrets").
		Param("labelSelector", v1alpha1.BotLabel+"="+bot).Do(t.Context()).Into(&list))
	for range list.Items {
		found = append(found, "secret")
	}
	return found
}

func (s scene) leaves(t testing.TB, bot string, want ...string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		got := s.left(t, bot)
		return framework.Check(fmt.Sprint(got) == fmt.Sprint(want), "%v instead of %v", got, want)
	})
}

func getOptions() metav1.GetOptions { return metav1.GetOptions{} }

func deleteOptions() metav1.DeleteOptions { return metav1.DeleteOptions{} }

// watches opens a watch with a token and returns a channel that gets the time of its end.
func (s scene) watches(t testing.TB, hub *framework.Hub, secret string) <-chan time.Time {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/clusters/"+s.cluster+configMaps+"?watch=true&timeoutSeconds=120", http.NoBody)
	require.NoError(t, err)
	r.Header = bearer(secret)
	client := *hub.HTTP
	client.Timeout = 0
	response, err := client.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	ended := make(chan time.Time, 1)
	go func() {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		ended <- time.Now()
	}()
	return ended
}

// cut requires that a watch ended within two seconds from began, the request included that
// ended the right to it.
func (s scene) cut(t testing.TB, ended <-chan time.Time, began time.Time) {
	t.Helper()
	select {
	case at := <-ended:
		require.True(t, at.After(began), "it was open until then")
	case <-time.After(2 * time.Second):
		require.Fail(t, "the watch is still open")
	}
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o600))
}
