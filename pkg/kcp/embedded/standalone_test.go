package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	kcpoptions "github.com/kcp-dev/kcp/cmd/kcp/options"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	cliflag "k8s.io/component-base/cli/flag"
)

// filledFolder returns a folder with the files that a start of the hub makes.
func filledFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kcp")
	for _, file := range []string{
		lockFile, databaseFile, "admin.kubeconfig", "sa.key", "etcd-server/secrets/ca/cert.pem", "etcd-server/secrets/peer/cert.pem",
		"etcd-server/secrets/peer/key.pem", "etcd-server/secrets/client/cert.pem", "etcd-server/secrets/client/key.pem",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
	ports := `{"kcp-port":6444,"etcd-client-port":2379,"etcd-peer-port":2380}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, portsFile), []byte(ports), 0o600))
	return dir
}

// issuers is what kcp needs to know of an identity provider.
func issuers(url string) []apiserverv1.JWTAuthenticator {
	return []apiserverv1.JWTAuthenticator{{Issuer: apiserverv1.Issuer{URL: url}}}
}

// kcp's own program understands the flags, and gets the options of the embedded kcp from them.
func TestStandalone_isConfiguredAsTheEmbeddedKCP(t *testing.T) {
	t.Parallel()
	// The port in the options is that of the next start of a hub, and not that of the data.
	o := Options{Dir: filledFolder(t), Port: 7443, JWT: issuers("https://issuer"), EtcdQuota: 1 << 30}
	require.NoError(t, (&Server{options: o}).keepAuthentication())
	etcd, kcp, err := Standalone(o, "/etc/tokens.csv")
	require.NoError(t, err)
	require.Equal(t, "etcd", etcd[0])
	require.Contains(t, etcd, "--quota-backend-bytes=1140850688")
	require.Contains(t, etcd, "--listen-client-urls=https://localhost:2379")
	require.Contains(t, etcd, "--initial-cluster=default=https://localhost:2380")
	require.Equal(t, []string{"kcp", "start", "--root-directory=" + o.Dir}, kcp[:3])

	program := kcpoptions.NewOptions(o.Dir)
	var sets cliflag.NamedFlagSets
	program.AddFlags(&sets)
	flags := pflag.NewFlagSet("kcp", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	require.NoError(t, flags.Parse(kcp[2:]))
	o.Port = 6444
	flagsOf(configured(o)).VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "token-auth-file":
			require.Equal(t, "/etc/tokens.csv", flags.Lookup(f.Name).Value.String())
		case "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile":
			require.NotEqual(t, f.Value.String(), flags.Lookup(f.Name).Value.String(), f.Name)
		case "embedded-etcd-client-port", "embedded-etcd-peer-port", "embedded-etcd-quota-backend-bytes":
		default:
			require.Equal(t, f.Value.String(), flags.Lookup(f.Name).Value.String(), f.Name)
		}
	})
	for _, flag := range []string{
		"--authentication-config=" + filepath.Join(o.Dir, authenticationFile),
		"--secure-port=6444", "--shard-base-url=https://127.0.0.1:6444",
		"--api-audiences=https://kcp.default.svc,kedge", "--batteries-included=admin", "--enable-home-workspaces=false",
		"--etcd-servers=https://localhost:2379", "--anonymous-auth=false",
	} {
		require.Contains(t, kcp, flag)
	}
}

func TestStandalone_saysWhatIsWrong(t *testing.T) {
	t.Parallel()
	hold := func(t *testing.T, path string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	}
	choose := func(t *testing.T, o *Options, ports string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(o.Dir, portsFile), []byte(ports), 0o600))
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, o *Options)
		want   string
	}{
		"nothing": {func(*testing.T, *Options) {}, ""},
		"a hub":   {func(t *testing.T, o *Options) { hold(t, filepath.Join(o.Dir, lockFile)) }, "a hub works with"},
		"an etcd": {func(t *testing.T, o *Options) { hold(t, filepath.Join(o.Dir, databaseFile)) }, "an etcd works with"},
		"no key": {func(t *testing.T, o *Options) {
			require.NoError(t, os.Remove(filepath.Join(o.Dir, "sa.key")))
		}, "sa.key; start the hub until it is ready"},
		"no data": {func(_ *testing.T, o *Options) {
			o.Dir = filepath.Join(o.Dir, "none")
		}, portsFile + "; start the hub until it is ready"},
		"no ports":  {func(t *testing.T, o *Options) { choose(t, o, `{"kcp-port":1}`) }, "lacks etcd-client-port"},
		"bad ports": {func(t *testing.T, o *Options) { choose(t, o, `{`) }, portsFile},
		"an issuer of the last start": {func(t *testing.T, o *Options) {
			before := Server{options: Options{Dir: o.Dir, JWT: issuers("https://issuer")}}
			require.NoError(t, before.keepAuthentication())
		}, "name different identity providers; give all flags of the hub"},
		"an issuer of the next start": {func(_ *testing.T, o *Options) {
			o.JWT = issuers("https://issuer")
		}, "name different identity providers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: filledFolder(t)}
			c.change(t, &o)
			etcd, kcp, err := Standalone(o, "")
			if c.want == "" {
				require.NoError(t, err)
				require.False(t, slices.ContainsFunc(slices.Concat(etcd, kcp), func(arg string) bool { return arg == "" }))
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestNew_refusesTheDataOfAnEtcdThatRuns(t *testing.T) {
	t.Parallel()
	dir := filledFolder(t)
	etcd, err := os.OpenFile(filepath.Join(dir, databaseFile), os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(etcd.Fd()), syscall.LOCK_EX))
	_, err = New(Options{Dir: dir})
	require.ErrorContains(t, err, "--data-dir: an etcd works with "+dir+"; stop it first")
	require.NoError(t, etcd.Close())
	locked, err := lock(dir)
	require.NoError(t, err, "the refusal leaves no lock")
	require.NoError(t, locked.Close())
}
