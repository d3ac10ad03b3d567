package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/framework"
)

// plugins is the number of kubectl processes that ask for a credential at the same time.
const plugins = 20

// lifetime is that of Dex's ID tokens. After half of it the hub asks Dex for newer ones.
const lifetime = 40 * time.Second

// withDex returns the flags of a hub with Dex as its identity provider.
func withDex(dex *framework.Dex) []string {
	return []string{
		"--oidc-issuer-url", dex.Issuer, "--oidc-ca-file", dex.CAFile,
		"--oidc-client-id", framework.HubClient, "--oidc-client-secret-file", dex.SecretFile,
	}
}

// One person logs in on two computers with the command line. Both work with kubectl, and go
// on doing so over refreshes, of which twenty at once are one at Dex. A session that is ended
// takes its kubectl along. A hub that is killed in the middle of two logins completes them
// after its restart. No token, code or secret of all this is in a log, a metric or an object.
func TestIdentity_onTwoComputersAgainstDex(t *testing.T) {
	t.Parallel()
	dex, err := framework.StartDex(t.TempDir(), framework.DexOptions{IDTokens: lifetime})
	require.NoError(t, err)
	t.Cleanup(dex.Kill)
	dir, port := t.TempDir(), dex.HubPort(t)
	audited := filepath.Join(dir, "audit.log")
	h := startHub(t, dir, port, append(withDex(dex), "--audit-log-file", audited)...)
	s := &secrets{all: map[string]bool{framework.HubClientSecret: true, framework.DexPassword: true}}

	one, two := newComputer(t, s), newComputer(t, s)
	one.login(t, h, dex, "alice")
	two.login(t, h, dex, "alice")
	one.kedge(t, "orgs", "create", "ACME")
	one.kedge(t, "workspaces", "create", "work")
	one.kedge(t, "kubeconfig", "--file", filepath.Join(one.home, "kubeconfig"))
	shared, err := os.ReadFile(filepath.Join(one.home, "kubeconfig"))
	require.NoError(t, err)
	s.in(t, "the kubeconfig", shared)
	require.NoError(t, os.WriteFile(filepath.Join(two.home, "kubeconfig"), shared, 0o600))
	for _, c := range []*computer{one, two} {
		out, err := c.kubectl(t, "get", "namespaces")
		require.NoError(t, err, out)
	}

	twentyPlugins(t, dex, one)
	out, err := two.kubectl(t, "get", "namespaces")
	require.NoError(t, err, "the login of the other computer lives on: %s", out)
	endedElsewhere(t, one, two)
	h = restartedInLogins(t, h, dex, one)

	one.kedge(t, "logout")
	log, err := json.Marshal(h.Output.String())
	require.NoError(t, err)
	s.in(t, "the hub's log", log)
	events := framework.AuditText(t, audited)
	s.in(t, "the audit log", events)
	made := slices.DeleteFunc(framework.AuditEvents(t, audited), func(e audit.Event) bool { return e.Action != "POST /api/orgs" || e.Stage != audit.StageIntent })
	require.Len(t, made, 1)
	require.Equal(t, dex.Issuer, made[0].Actor.Issuer)
	require.NotEmpty(t, made[0].Actor.User)
	for _, action := range []string{"login cli", "logout cli", "sign-up", "token refresh_token", "POST /api/orgs"} {
		require.Contains(t, string(events), `"action":"`+action+`"`)
	}
	require.Contains(t, string(events), `"peer":"127.0.0.1"`)
	metrics, err := (&framework.Client{URL: h.metrics, HTTP: http.DefaultClient}).Try(framework.Call{Method: http.MethodGet})
	require.NoError(t, err)
	s.in(t, "the metrics", metrics.Raw)
	require.NoError(t, framework.UndocumentedMetrics("../../pkg/metrics/doc.go", metrics.Raw))
	for _, name := range []string{"size", "used", "quota"} {
		require.Regexp(t, `\nkedge_etcd_`+name+`_bytes [1-9]`, string(metrics.Raw), "of the embedded etcd")
	}
	for _, workspace := range []string{"root:kedge", "root:kedge:users"} {
		for _, kind := range []string{"secrets", "configmaps", "events", "sessions.tenancy.kedge.faros.sh", "users.tenancy.kedge.faros.sh"} {
			if workspace == "root:kedge" && strings.Contains(kind, ".") {
				continue
			}
			s.in(t, kind+" in "+workspace, objects(t, h, workspace, kind))
		}
	}
}

// objects reads all objects of a kind as kcp's admin, with the content of Secrets decoded.
func objects(t *testing.T, h *hub, workspace, kind string) []byte {
	t.Helper()
	out, errOut, err := framework.Kubectl(t, "", "--kubeconfig", filepath.Join(h.dir, "kcp", "admin.kubeconfig"), "--context", "base",
		"get", kind, "--all-namespaces", "-o", "json", "--server", kcpURL(t, h)+"/clusters/"+workspace)
	require.NoError(t, err, errOut)
	var list struct {
		Items []struct{ Data map[string][]byte }
	}
	if kind == "secrets" {
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		for _, item := range list.Items {
			for _, value := range item.Data {
				out += "\n" + string(value)
			}
		}
	}
	return []byte(out)
}

// kcpURL is the base URL of the hub's embedded kcp.
func kcpURL(t *testing.T, h *hub) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, "kcp", "ports.json"))
	require.NoError(t, err)
	var ports map[string]int
	require.NoError(t, json.Unmarshal(raw, &ports))
	return fmt.Sprintf("https://127.0.0.1:%d", ports["kcp-port"])
}

// twentyPlugins runs kubectl twenty times at once when the login needs a newer ID token.
func twentyPlugins(t *testing.T, dex *framework.Dex, c *computer) {
	t.Helper()
	token := c.profiles(t)
	require.Len(t, token, 1)
	for _, p := range token {
		framework.Eventually(t, framework.Long, func() error {
			return framework.Check(time.Until(expiry(t, p.Token)) < lifetime/2-2*time.Second, "the token is still good for long")
		})
	}
	before := dex.TokenRequests(t)
	runs := make([]*run, plugins)
	for i := range runs {
		runs[i] = c.start(t, "kubectl", "--kubeconfig", filepath.Join(c.home, "kubeconfig"), "get", "namespace", "default", "-o", "name")
	}
	for _, r := range runs {
		require.NoError(t, r.wait(t), "%s", r.errOut)
		require.Equal(t, "namespace/default\n", r.out.String(), "%s", r.errOut)
	}
	c.remember(t)
	require.Equal(t, before+1, dex.TokenRequests(t), "requests to Dex of %d plugins", plugins)
}

// expiry reads the expiry of an ID token, unverified.
func expiry(t *testing.T, token string) time.Time {
	t.Helper()
	return time.Unix(framework.Claims(t, token).Expiry, 0)
}

// endedElsewhere ends the session of one computer from another, while a kubectl watch is open.
func endedElsewhere(t *testing.T, ends, ended *computer) {
	t.Helper()
	var list struct {
		Items []struct {
			ID      string
			Current bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ends.kedge(t, "sessions", "list", "-o", "json")), &list))
	require.Len(t, list.Items, 2)
	watch := ended.start(t, "kubectl", "--kubeconfig", filepath.Join(ended.home, "kubeconfig"), "get", "namespaces", "--watch")
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(strings.Contains(watch.out.String(), "default"), "the watch shows nothing: %s", watch.errOut)
	})
	for _, session := range list.Items {
		if !session.Current {
			ends.kedge(t, "sessions", "end", session.ID)
		}
	}
	began := time.Now()
	_ = watch.wait(t)
	require.Less(t, time.Since(began), 3*time.Second)
	out, err := ended.kubectl(t, "get", "namespaces")
	require.Error(t, err)
	require.Contains(t, out, "kedge login")
	require.NoFileExists(t, ended.browser, "kubectl opens no browser")
	out, err = ends.kubectl(t, "get", "namespaces")
	require.NoError(t, err, out)
}

// restartedInLogins kills the hub while one login waits for the person at Dex, and another
// has its code. Both complete after the restart.
func restartedInLogins(t *testing.T, h *hub, dex *framework.Dex, c *computer) *hub {
	t.Helper()
	waiting, start := c.beginLogin(t, h, "--profile", "bob")
	b := framework.NewBrowser(t, h.CA, dex.CAFile)
	form := b.Get(t, start)
	coded, began := framework.NewLogin(), time.Now()
	code := coded.Code(t, dex.LogIn(t, framework.NewBrowser(t, h.CA, dex.CAFile), coded.URL(h.Client), "carol"))
	c.secrets.add(code)
	c.secrets.add(coded.Verifier)

	h.Kill()
	h = startHub(t, h.dir, h.port, append(withDex(dex), "--audit-log-file", filepath.Join(h.dir, "audit.log"))...)
	redeemed := coded.Redeem(t, h.Client, code)
	// A code lives for a minute, and on a loaded machine the kcp of the hub may need it to start.
	if redeemed.Code == http.StatusOK || time.Since(began) < time.Minute {
		tokens := framework.TokensOf(t, redeemed)
		c.secrets.add(tokens.Access)
		c.secrets.add(tokens.Secret)
		h.Do(t, framework.Call{Token: tokens.Access, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	} else {
		require.Equal(t, "invalid_grant", redeemed.Text("error"))
	}
	c.finishLogin(t, waiting, dex.Enter(t, b, form, "bob"))
	require.Contains(t, c.kedge(t, "whoami", "--profile", "bob"), "bob")
	c.kedge(t, "profiles", "use", c.other(t, "bob"))
	return h
}

// other is the name of the computer's login beside the one of that name.
func (c *computer) other(t *testing.T, name string) string {
	t.Helper()
	for found := range c.profiles(t) {
		if found != name {
			return found
		}
	}
	require.Fail(t, "there is no other login")
	return ""
}
