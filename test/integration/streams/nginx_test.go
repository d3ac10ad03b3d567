package streams

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// nginxName is the host of the hub's URL in the example.
const nginxName = "hub.example.com"

// behindNginx starts a hub that trusts the X-Forwarded-For of nginx.
func behindNginx(t *testing.T) *framework.Hub {
	t.Helper()
	return framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) {
		o.ExternalURL = "https://" + nginxName
		o.AuditLogFile = filepath.Join(o.DataDir, "audit.log")
		o.Limits.TrustedProxyCIDRs = []string{"127.0.0.1/32"}
		o.Limits.FailedAuthenticationsPerPeer = 1
	})
}

// startNginx starts nginx with deploy/examples/nginx.conf in front of a hub. Ports and files are
// those of the test; change is the rest that differs, old and new in turn.
func startNginx(t *testing.T, hub *framework.Hub, change ...string) *framework.Hub {
	t.Helper()
	dir := t.TempDir()
	_, err := certs.Ensure(dir, []string{nginxName, "127.0.0.1"}, time.Now())
	require.NoError(t, err)
	port, err := framework.FreePort()
	require.NoError(t, err)
	raw, err := os.ReadFile("../../../deploy/examples/nginx.conf")
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	site := string(raw)
	change = append(change,
		"server 127.0.0.1:9443;", "server "+strings.TrimPrefix(hub.URL, "https://")+";",
		"listen 443 ssl http2;", "listen "+address+" ssl http2;",
		"/etc/nginx/tls/tls.crt", filepath.Join(dir, "tls.crt"), "/etc/nginx/tls/tls.key", filepath.Join(dir, "tls.key"),
		"/etc/nginx/kedge-hub-ca.crt", hub.CA)
	for i := 0; i < len(change); i += 2 {
		require.Contains(t, site, change[i])
		site = strings.ReplaceAll(site, change[i], change[i+1])
	}
	main := "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr warn;\nevents {}\nhttp {\naccess_log off;\n"
	for _, temporary := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += temporary + "_temp_path " + temporary + ";\n"
	}
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(main+site+"}\n"), 0o600))
	process, err := framework.StartProcess(framework.NeedProgram(t, "nginx"), "-p", dir, "-e", "stderr", "-c", file)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	client, err := framework.NewClient("https://"+address, filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	t.Cleanup(client.HTTP.CloseIdleConnections)
	framework.Eventually(t, framework.Long, func() error {
		a, err := client.Try(call{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("%d %s", a.Code, a.Raw)
		}
		if err != nil {
			return fmt.Errorf("nginx: %w\n%s", err, process.Output)
		}
		return nil
	})
	return &framework.Hub{Client: client}
}

// connecting returns the client of nginx with connections from another address on loopback.
func connecting(t *testing.T, front *framework.Hub, from string) *framework.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	config := tlsOf(t, front)
	config.ServerName = nginxName
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, strings.TrimPrefix(front.URL, "https://"))
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &framework.Client{URL: "https://" + nginxName, HTTP: &http.Client{Transport: transport, Timeout: framework.Long}}
}

func TestNginx_passesStreamsPathsAndAddresses(t *testing.T) {
	t.Parallel()
	framework.NeedProgram(t, "nginx")
	hub := behindNginx(t)
	front := startNginx(t, hub)
	// No other time-out of nginx ends an idle watch: here those that the example leaves at their
	// default of about a minute are shorter than the one that does.
	hasty := startNginx(t, hub, "client_max_body_size 0;", "client_max_body_size 0; send_timeout 200ms; client_body_timeout 200ms; keepalive_timeout 200ms;")
	impatient := startNginx(t, hub, "proxy_read_timeout      1h;", "proxy_read_timeout 1s;")
	org := front.CreateOrg(t, "alice", "ACME")
	cluster := front.CreateWorkspace(t, "alice", org, "dev").Text("clusterID")

	// Nothing happens to Secrets. Over HTTP/2, nginx sends the headers together with the first event.
	const quiet = "/api/v1/namespaces/default/secrets"
	idle, hurried := open(t, front, "h1", "alice", cluster, quiet, nil), open(t, hasty, "h1", "alice", cluster, quiet, nil)
	cut := open(t, impatient, "h1", "alice", cluster, quiet, nil)
	events := newSource(t, cluster)
	for _, kind := range streamKinds {
		events.follows(t, open(t, front, kind, "alice", cluster, configMaps, nil))
	}
	events.stop()
	select {
	case <-cut.ended:
	case <-time.After(framework.Long):
		require.Fail(t, "the control: a shorter time-out ends an idle watch")
	}
	require.True(t, idle.isOpen(), "the time-out of the example is longer: %s", idle.text())
	require.True(t, hurried.isOpen(), "it is the only one that matters: %s", hurried.text())

	for _, path := range []string{
		"/configmaps/a%2Fb", "/configmaps/%2e%2e", "/configmaps/../secrets", "//configmaps", "/configmaps/%2E%2E%2Fsecrets", "/configmaps/a+b%20c?limit=1&x=%2F",
	} {
		c := call{As: "alice", Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces/default" + path}
		direct, err := hub.Try(c)
		require.NoError(t, err)
		passed, err := front.Try(c)
		require.NoError(t, err)
		require.Equal(t, direct.Code, passed.Code, "%s: %s and %s", path, direct.Raw, passed.Raw)
		if direct.JSON != nil {
			require.Equal(t, direct.Text("message"), passed.Text("message"), path)
		}
	}
	large := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"a":"` + strings.Repeat("x", 2<<20) + `"}}`
	a, err := front.Try(call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + configMaps, Body: large})
	require.NoError(t, err)
	require.NotNil(t, a.JSON, "the hub or kcp answers, not nginx: %d %s", a.Code, a.Raw)

	invented := http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	connecting(t, front, "127.0.0.2").Do(t, call{As: "alice", Method: http.MethodPatch, Path: "/api/orgs/" + org, Org: org, Header: invented, Body: map[string]string{"displayName": "ACME 2"}}, http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		raw, err := os.ReadFile(hub.Options.AuditLogFile)
		return framework.Check(err == nil && strings.Contains(string(raw), `"127.0.0.2"`), "the audit log has no such client: %v %s", err, raw)
	})
	raw, err := os.ReadFile(hub.Options.AuditLogFile)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "192.0.2.1", "nginx replaces what a client says about itself")

	guessing, other := connecting(t, front, "127.0.0.3"), connecting(t, front, "127.0.0.4")
	bad := call{Token: "guessed", Method: http.MethodGet, Path: "/api/users/me"}
	framework.Eventually(t, framework.Long, func() error {
		a, err := guessing.Try(bad)
		return framework.Check(err == nil && a.Code == http.StatusTooManyRequests, "%v %d", err, a.Code)
	})
	other.Do(t, bad, http.StatusUnauthorized)
}
