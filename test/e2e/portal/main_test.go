package portal

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// admin is the platform admin.
const admin = "operator"

// scene is a hub with Dex and a browser.
type scene struct {
	dex     *framework.Dex
	program string
	flags   []string
	// kubeconfig is that of kcp's admin, ca the file of the hub's certificate authority.
	kubeconfig, ca string
	hub            *framework.Process
	client         *framework.Client
	browser        *framework.Chromium
}

// start starts the hub, whose data may be those of an earlier one.
func (s *scene) start(t *testing.T) {
	t.Helper()
	var err error
	s.hub, err = framework.StartProcess(s.program, s.flags...)
	require.NoError(t, err)
	t.Cleanup(s.hub.Kill)
}

// ready waits until the hub is ready.
func (s *scene) ready(t *testing.T, url string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() (err error) {
		select {
		case <-s.hub.Ended():
			require.Fail(t, "the hub ended", "%s", s.hub.Output)
		default:
		}
		if s.client, err = framework.NewClient(url, s.ca); err != nil {
			return err
		}
		a, err := s.client.Try(framework.Call{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("not ready: %s", a.Raw)
		}
		return err
	})
}

// newScene starts a hub with Dex and a browser. Later flags have precedence.
func newScene(t *testing.T, flags ...string) *scene {
	t.Helper()
	framework.NeedChromium(t)
	if _, err := framework.Bin("axe.min.js"); err != nil {
		t.Log("no axe-core, for which Node is needed: its rules are not checked")
	}
	s, dir := &scene{}, t.TempDir()
	var err error
	s.program, err = framework.Bin("kedge-hub")
	require.NoError(t, err)
	s.dex, err = framework.StartDex(t.TempDir(), framework.DexOptions{})
	require.NoError(t, err)
	t.Cleanup(s.dex.Kill)
	require.NoError(t, framework.WriteTokens(filepath.Join(dir, "tokens.csv"), admin))
	address := fmt.Sprintf("127.0.0.1:%d", s.dex.HubPort(t))
	s.kubeconfig = filepath.Join(dir, "kcp", "admin.kubeconfig")
	s.flags = []string{
		"--data-dir", dir, "--spare-organizations", "0", "--spare-workspaces", "0", "--token-file", filepath.Join(dir, "tokens.csv"), "--admin-user", admin, "--registration", "approval",
		"--listen-address", address, "--metrics-listen-address", "", "--kcp-port", "0", "--etcd-client-port", "0", "--etcd-peer-port", "0",
		"--oidc-issuer-url", s.dex.Issuer, "--oidc-ca-file", s.dex.CAFile,
		"--oidc-client-id", framework.HubClient, "--oidc-client-secret-file", s.dex.SecretFile,
		"--ci-issuer", s.dex.Issuer, "--ci-ca-file", s.dex.CAFile,
	}
	s.flags = append(s.flags, flags...)
	// The hub writes its certificate first and then starts kcp, which takes longer than a browser.
	s.start(t)
	certificate := filepath.Join(dir, "tls", "tls.crt")
	s.ca = filepath.Join(dir, "tls", "ca.crt")
	s.ready(t, "https://"+address)
	s.browser = framework.StartChromium(t, s.dex.CertFile(), certificate)
	return s
}

// person returns somebody with a tab and cookies of their own.
func (s *scene) person(t *testing.T, name string) *person {
	t.Helper()
	return &person{Chromium: s.browser.Tab("private " + name), t: t, hub: s.client.URL}
}

// failures are the lines of the hub's log about what is no success.
func failures(log string) string {
	var found strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "WARN") {
			found.WriteString(line)
		}
	}
	return found.String()
}
