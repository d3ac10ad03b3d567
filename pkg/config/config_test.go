package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/config"
)

type options struct {
	address string
	grace   time.Duration
	orgs    bool
	portal  bool
	quota   int
	rate    float64
	admins  []string
	claims  []string
}

// load parses args, and completes them with a file and an environment.
func load(t *testing.T, args []string, file string, environ ...string) (options, error) {
	t.Helper()
	var o options
	fs := pflag.NewFlagSet("kedge-hub", pflag.ContinueOnError)
	config.AddFlag(fs)
	fs.StringVar(&o.address, "listen-address", "default:1", "")
	fs.BoolVar(&o.portal, "portal", true, "")
	fs.DurationVar(&o.grace, "deletion-grace", time.Hour, "")
	fs.BoolVar(&o.orgs, "personal-orgs", true, "")
	fs.IntVar(&o.quota, "default-org-quota", 10, "")
	fs.Float64Var(&o.rate, "sign-ups", 20, "")
	fs.StringSliceVar(&o.admins, "admin-user", []string{"root"}, "")
	fs.StringArrayVar(&o.claims, "oidc-required-claim", nil, "")
	if file != "" {
		path := filepath.Join(t.TempDir(), "hub.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		args = append(args, "--config", path)
	}
	require.NoError(t, fs.Parse(args))
	return o, config.Load(fs, environ)
}

const head = "apiVersion: config.kedge.faros.sh/v1alpha1\nkind: HubConfiguration\n"

func TestLoad_flagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	file := head + "listen-address: file:1\ndeletion-grace: 3h\ndefault-org-quota: 3\nadmin-user: [of-file]\n"
	o, err := load(t, []string{"--listen-address", "flag:1", "--admin-user", "of-flag"}, file,
		"KEDGE_HUB_LISTEN_ADDRESS=environment:1", "KEDGE_HUB_DELETION_GRACE=2h", "KEDGE_HUB_ADMIN_USER=of-environment")
	require.NoError(t, err)
	require.Equal(t, options{address: "flag:1", grace: 2 * time.Hour, quota: 3, orgs: true, portal: true, rate: 20, admins: []string{"of-flag"}}, o)
}

func TestLoad_readsEveryType(t *testing.T) {
	t.Parallel()
	want := options{address: "", grace: 90 * time.Minute, orgs: false, portal: true, quota: 0, rate: 0.5, admins: []string{"a", "b"}, claims: []string{"hd=x,y", "k=v"}}
	o, err := load(t, nil, head+"listen-address: ''\ndeletion-grace: 1h30m\npersonal-orgs: false\ndefault-org-quota: 0\nsign-ups: 0.5\nadmin-user:\n- a\n- b\noidc-required-claim: ['hd=x,y', k=v]\n")
	require.NoError(t, err)
	require.Equal(t, want, o)
	o, err = load(t, nil, "", "KEDGE_HUB_LISTEN_ADDRESS=", "KEDGE_HUB_DELETION_GRACE=1h30m", "KEDGE_HUB_PERSONAL_ORGS=false",
		"KEDGE_HUB_DEFAULT_ORG_QUOTA=0", "KEDGE_HUB_SIGN_UPS=0.5", "KEDGE_HUB_ADMIN_USER=a,b", `KEDGE_HUB_OIDC_REQUIRED_CLAIM="hd=x,y",k=v`)
	require.NoError(t, err)
	require.Equal(t, want, o)
	o, err = load(t, nil, head+"admin-user: []\n")
	require.NoError(t, err)
	require.Empty(t, o.admins, "an empty list replaces the default")
}

func TestLoad_fileCanBeNamedInTheEnvironment(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(path, []byte(head+"default-org-quota: 7\n"), 0o600))
	o, err := load(t, nil, "", "KEDGE_HUB_CONFIG="+path)
	require.NoError(t, err)
	require.Equal(t, 7, o.quota)
}

func TestLoad_namesEveryMistakeOfTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"an unknown key":     {head + "listen-addresses: a:1\n", `hub.yaml:3: "listen-addresses" is not a flag; the nearest is listen-address`},
		"the variable":       {head + "KEDGE_HUB_SIGN_UPS: 1\n", "is not a flag"},
		"itself":             {head + "config: other.yaml\n", `"config" is not a flag`},
		"help":               {head + "help: true\n", `"help" is not a flag`},
		"twice":              {head + "sign-ups: 1\nsign-ups: 2\n", "hub.yaml:4: sign-ups is given twice"},
		"no number":          {head + "default-org-quota: many\n", `default-org-quota: "many" is not a int`},
		"no duration":        {head + "deletion-grace: 5\n", `"5" is not a duration`},
		"no list":            {head + "admin-user: alice\n", "admin-user: give a list"},
		"a list of maps":     {head + "admin-user: [{a: b}]\n", "give a list of words"},
		"a list for a word":  {head + "sign-ups: [1]\n", "sign-ups: give a float64"},
		"nothing":            {head + "listen-address:\n", "listen-address: give a string"},
		"another kind":       {"apiVersion: config.kedge.faros.sh/v1alpha1\nkind: Hub\n", `kind is "Hub"; it must be HubConfiguration`},
		"no version":         {"kind: HubConfiguration\n", "apiVersion is missing"},
		"no map":             {"- a\n", "it is not a map of flags"},
		"no YAML":            {"a: [\n", "it is not a YAML document"},
		"empty":              {"\n", "it is not a YAML document"},
		"a second document":  {head + "---\n" + head, "more than one YAML document"},
		"two mistakes, both": {head + "sign-ups: x\nadmin-users: [a]\n", "the nearest is admin-user"},
	} {
		_, err := load(t, nil, c.file)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := load(t, nil, head+"sign-ups: x\nadmin-users: [a]\n")
	require.Len(t, strings.Split(err.Error(), "\n"), 2)
	_, err = load(t, []string{"--config", "/nowhere/hub.yaml"}, "")
	require.ErrorContains(t, err, "--config: ")
}

func TestLoad_namesTheVariableThatIsMeant(t *testing.T) {
	t.Parallel()
	_, err := load(t, nil, "", "KEDGE_HUB_LISTEN_ADDRESSES=a:1")
	require.ErrorContains(t, err, "KEDGE_HUB_LISTEN_ADDRESSES: there is no such flag; is it KEDGE_HUB_LISTEN_ADDRESS?")
	_, err = load(t, nil, "", "KEDGE_HUB_PERSONAL_ORGS=maybe")
	require.ErrorContains(t, err, `KEDGE_HUB_PERSONAL_ORGS: "maybe" is not a bool`)
	// Kubernetes sets these for a Service called kedge-hub.
	o, err := load(t, nil, "", "KEDGE_HUB_PORT=tcp://10.0.0.1:443", "KEDGE_HUB_PORT_443_TCP=tcp://10.0.0.1:443", "KEDGE_HUB_SERVICE_PORT=443", "KEDGE_HUB_SERVICE_HOST=10.0.0.1", "KEDGE_HUB_PORT_443_TCP_ADDR=10.0.0.1", "KEDGE_TEST_BIN=x")
	require.NoError(t, err)
	require.Equal(t, "default:1", o.address)
	require.True(t, o.portal)
	_, err = load(t, nil, "", "KEDGE_HUB_PORTA=false")
	require.ErrorContains(t, err, "is it KEDGE_HUB_PORTAL?")
}

func TestArguments_setTheSameValues(t *testing.T) {
	t.Parallel()
	flags := func() *pflag.FlagSet {
		fs := pflag.NewFlagSet("kedge-hub", pflag.ContinueOnError)
		fs.String("address", "", "")
		fs.Duration("grace", time.Hour, "")
		fs.Bool("orgs", true, "")
		fs.StringSlice("admins", []string{"somebody"}, "")
		fs.StringArray("claims", []string{"some=claim"}, "")
		return fs
	}
	given := flags()
	require.NoError(t, given.Parse([]string{
		"--address", "a b", "--grace", "0s", "--orgs=false", "--admins", `alice,"bob, and carol"`, "--claims", "a=1,2", "--claims", "b",
	}))
	var args []string
	given.VisitAll(func(f *pflag.Flag) { args = append(args, config.Arguments(f)...) })
	require.Equal(t, []string{"--address=a b", `--admins=alice,"bob, and carol"`, "--claims=a=1,2", "--claims=b", "--grace=0s", "--orgs=false"}, args)
	again := flags()
	require.NoError(t, again.Parse(args))
	given.VisitAll(func(f *pflag.Flag) { require.Equal(t, f.Value.String(), again.Lookup(f.Name).Value.String()) })
}
