package options

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOptions_defaultsAreComplete(t *testing.T) {
	t.Parallel()
	c, err := New().Complete()
	require.NoError(t, err)
	require.Equal(t, "https://127.0.0.1:9443", c.ExternalURL)
	require.True(t, c.Embedded)
	require.Equal(t, "root:kedge:orgs", c.Tree.Orgs())
	require.True(t, filepath.IsAbs(c.DataDir))
}

// withIssuer changes the flags of a valid issuer.
func withIssuer(change func(*OIDCOptions)) func(*Options) {
	return func(o *Options) {
		o.OIDC.IssuerURL, o.OIDC.ClientID = "https://idp.example", "kedge"
		change(&o.OIDC)
	}
}

func TestComplete_acceptsAnIssuer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hush\n"), 0o600))
	o := New()
	withIssuer(func(o *OIDCOptions) {
		o.RequiredClaims, o.ClientSecretFile = []string{"hd=example.com", "a=b=c"}, secret
	})(o)
	c, err := o.Complete()
	require.NoError(t, err)
	require.Equal(t, "hush", c.Issuer.ClientSecret)
	require.Equal(t, map[string]string{"hd": "example.com", "a": "b=c"}, c.Issuer.RequiredClaims)
	require.Equal(t, "kedge:", c.Issuer.UsernamePrefix)
	require.Equal(t, "https://idp.example", c.KCP().Embedded.JWT[0].Issuer.URL)
}

func TestComplete_readsSessionKeys(t *testing.T) {
	t.Parallel()
	o := New()
	o.Sessions.IdleTimeout, o.Sessions.MaxAge = 10*time.Second, 10*time.Second
	o.Sessions.KeyFile = filepath.Join(t.TempDir(), "keys")
	const older, newer = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "HxECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	require.NoError(t, os.WriteFile(o.Sessions.KeyFile, []byte(newer+"\n"+older+"\n"), 0o600))
	c, err := o.Complete()
	require.NoError(t, err)
	require.Len(t, c.SessionKeys, 2)
	require.Equal(t, byte(0x1f), c.SessionKeys[0][0])
	require.NoError(t, os.WriteFile(o.Sessions.KeyFile, []byte("hush"), 0o600))
	_, err = o.Complete()
	require.ErrorContains(t, err, "line 1")
	require.NotContains(t, err.Error(), "hush")
}

func TestComplete_namesTheBadFlag(t *testing.T) {
	t.Parallel()
	for flag, change := range map[string]func(*Options){
		"--data-dir":                func(o *Options) { o.DataDir = "" },
		"--listen-address":          func(o *Options) { o.ListenAddress = "127.0.0.1" },
		"--external-url":            func(o *Options) { o.ListenAddress = "0.0.0.0:9443" },
		"--token-file":              func(o *Options) { o.TokenFile = "/nowhere/tokens.csv" },
		"--kcp-kubeconfig":          func(o *Options) { o.KCPKubeconfig = "/nowhere/kubeconfig" },
		"--session-idle-timeout":    func(o *Options) { o.Sessions.IdleTimeout = 9 * time.Second },
		"--session-max-age":         func(o *Options) { o.Sessions.MaxAge = 0 },
		"--session-key-file":        func(o *Options) { o.Sessions.KeyFile = os.Args[0] },
		"--root-workspace":          func(o *Options) { o.RootWorkspace = "kedge" },
		"--tls-cert-file":           func(o *Options) { o.TLSCertFile = os.Args[0] },
		"--kcp-port":                func(o *Options) { o.KCPPort = 70000 },
		"--etcd-client-port":        func(o *Options) { o.EtcdClientPort = -1 },
		"--default-org-quota":       func(o *Options) { o.DefaultOrgQuota = -1 },
		"--default-workspace-quota": func(o *Options) { o.DefaultWorkspaceQuota = -1 },
		"--cost-centers-file":       func(o *Options) { o.Billing.CostCentersFile = "/nowhere/centers" },
		"--default-cost-center":     func(o *Options) { o.Billing.DefaultCostCenter = strings.Repeat("1", 129) },
		"--workspace-objects":       func(o *Options) { o.Storage.WorkspaceObjects = -1 },
		"--workspace-bytes":         func(o *Options) { o.Storage.WorkspaceBytes = "100" },
		"--max-bytes-in-flight":     func(o *Options) { o.Limits.MaxBytesInFlight = "1000k" },
		"--kcp-cores":               func(o *Options) { o.Limits.KCPCores = -1 },
		"--workspace-roles":         func(o *Options) { o.Storage.WorkspaceRoles = -1 },
		"--org-bytes":               func(o *Options) { o.Storage.OrgBytes = "much" },
		"--etcd-quota":              func(o *Options) { o.Storage.EtcdQuota = "63Mi" },
		"--deletion-grace":          func(o *Options) { o.DeletionGrace = 0 },
		"--create-timeout":          func(o *Options) { o.CreateTimeout = -time.Second },
		"--bindable-cluster-role":   func(o *Options) { o.BindableClusterRoles = []string{"view", "cluster-admin"} },
		"--trusted-proxy-cidr":      func(o *Options) { o.Limits.TrustedProxyCIDRs = []string{"10.0.0.0/8", "10.0.0.1"} },
		"--max-connections":         func(o *Options) { o.Limits.MaxConnections = -1 },
		"--http2-max-streams":       func(o *Options) { o.Limits.MaxStreamsPerConnection = 0 },
		"--logins":                  func(o *Options) { o.Limits.Logins = -1 },
		"--device-logins":           func(o *Options) { o.Limits.DeviceLogins = -1 },
		"--writes-per-person":       func(o *Options) { o.Limits.WritesPerPerson = math.NaN() },
		"--oidc-issuer-url":         func(o *Options) { o.OIDC.IssuerURL, o.OIDC.ClientID = "http://idp.example", "kedge" },
		"--oidc-client-id":          func(o *Options) { o.OIDC.IssuerURL = "https://idp.example" },
		"--oidc-groups-claim":       func(o *Options) { o.OIDC.GroupsClaim = "groups" },
		"--oidc-scopes":             withIssuer(func(o *OIDCOptions) { o.Scopes = []string{"email"} }),
		"--oidc-extra-audience":     withIssuer(func(o *OIDCOptions) { o.ExtraAudiences = []string{"kedge"} }),
		"--oidc-username-claim":     withIssuer(func(o *OIDCOptions) { o.UsernameClaim = "" }),
		"--oidc-username-prefix":    withIssuer(func(o *OIDCOptions) { o.UsernamePrefix = "system:" }),
		"--oidc-required-claim":     withIssuer(func(o *OIDCOptions) { o.RequiredClaims = []string{"hd"} }),
		"--oidc-ca-file":            withIssuer(func(o *OIDCOptions) { o.CAFile = os.Args[0] }),
		"--oidc-client-secret-file": withIssuer(func(o *OIDCOptions) { o.ClientSecretFile = "/nowhere/secret" }),
		"--metrics-listen-address":  func(o *Options) { o.MetricsListenAddress = "9464" },
	} {
		o := New()
		change(o)
		_, err := o.Complete()
		require.ErrorContains(t, err, flag)
	}
	for _, bad := range []string{"http://hub.example.com", "https://hub.example.com/path", "https://u:p@hub.example.com", "hub.example.com", "https://"} {
		o := New()
		o.ExternalURL = bad
		_, err := o.Complete()
		require.ErrorContains(t, err, "--external-url", bad)
	}
	for _, bad := range []string{"10.0.0.1", "10.0.0.1/8", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "proxy"} {
		o := New()
		o.Limits.TrustedProxyCIDRs = []string{bad}
		_, err := o.Complete()
		require.ErrorContains(t, err, "--trusted-proxy-cidr", bad)
	}
}

// backup, verify and restore run in the image, which sets --listen-address to all addresses for every command.
func TestCompleteWithoutServing_needsNoURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:9443", ":9443", "[::]:9443"} {
		o := New()
		o.ListenAddress = address
		_, err := o.CompleteWithoutServing()
		require.NoError(t, err, address)
		_, err = o.Complete()
		require.ErrorContains(t, err, "--external-url: is required", address)
	}
	o := New()
	o.ExternalURL = "hub.example.com"
	_, err := o.CompleteWithoutServing()
	require.ErrorContains(t, err, "--external-url", "what is given is checked")
}

// Static tokens are for development: the portal takes them where no other machine can send one.
func TestPortalTokens_areForLoopbackOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.csv")
	require.NoError(t, os.WriteFile(file, []byte("t,alice,a\n"), 0o600))
	for name, c := range map[string]struct {
		change func(*Options)
		want   bool
	}{
		"by default":                 {func(*Options) {}, true},
		"IPv6":                       {func(o *Options) { o.ListenAddress = "[::1]:9443" }, true},
		"a name":                     {func(o *Options) { o.ListenAddress = "localhost:9443" }, true},
		"without tokens":             {func(o *Options) { o.TokenFile = "" }, false},
		"without the portal":         {func(o *Options) { o.Portal = false }, false},
		"another address":            {func(o *Options) { o.ListenAddress = "192.0.2.1:9443" }, false},
		"all addresses":              {func(o *Options) { o.ListenAddress, o.ExternalURL = ":9443", "https://127.0.0.1:9443" }, false},
		"behind a proxy with a name": {func(o *Options) { o.ExternalURL = "https://hub.example.com" }, false},
	} {
		o := New()
		o.TokenFile = file
		c.change(o)
		config, err := o.Complete()
		require.NoError(t, err, name)
		require.Equal(t, c.want, config.PortalTokens(), name)
	}
}

// More large lists at once than kcp has cores for hold up everybody, also where the hub does not know how many it has.
func TestLargeLists_areBoundedByTheCoresOfKCP(t *testing.T) {
	t.Parallel()
	own := max(runtime.GOMAXPROCS(0)/2, 1)
	for _, c := range []struct {
		cores    int
		embedded bool
		want     int
	}{{0, true, own}, {0, false, 1}, {1, true, 1}, {16, true, 8}, {16, false, 8}} {
		require.Equal(t, c.want, LimitOptions{KCPCores: c.cores}.LargeLists(c.embedded), "%+v", c)
	}
	require.Equal(t, 4, LimitOptions{}.Turns(false))
	require.Equal(t, 2*runtime.GOMAXPROCS(0), LimitOptions{}.Turns(true))
	require.Equal(t, 32, LimitOptions{KCPCores: 16}.Turns(true))
}
