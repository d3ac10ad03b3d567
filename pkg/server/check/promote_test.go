package check_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/server/check"
	"github.com/faroshq/kedge-hub/pkg/server/options"
)

// promoted returns what is printed for a data folder.
func promoted(t *testing.T, change func(*options.Options), standalone check.Standalone, given ...string) (string, error) {
	t.Helper()
	o := options.New()
	change(o)
	config, err := o.Complete()
	require.NoError(t, err)
	out := &strings.Builder{}
	err = check.Promote(config, standalone, given, out)
	return out.String(), err
}

// programs are those of a folder.
func programs(o connect.EmbeddedOptions, tokenFile string) (etcd, kcp []string, err error) {
	kcp = []string{"kcp", "start", "--root-directory=" + o.Dir, "--token-auth-file=" + tokenFile}
	return []string{"etcd", "--data-dir=" + o.Dir}, kcp, nil
}

// A shell runs what is printed, whatever the name of the folder.
func TestPromote_printsAScript(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's the $HOME of a hub")
	kcp := filepath.Join(dir, "kcp")
	_, err := certs.Ensure(kcp, []string{"127.0.0.1"}, time.Now())
	require.NoError(t, err)
	for from, to := range map[string]string{"tls.crt": "apiserver.crt", "tls.key": "apiserver.key"} {
		require.NoError(t, os.Rename(filepath.Join(kcp, from), filepath.Join(kcp, to)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(kcp, "admin.kubeconfig"), nil, 0o600))
	tokens := filepath.Join(dir, "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte("hush,alice,1"), 0o600))
	out, err := promoted(t, func(o *options.Options) { o.DataDir, o.TokenFile = dir, tokens }, programs,
		"--listen-address=127.0.0.1:9443", "--admin-user=the boss")
	require.NoError(t, err)
	require.Contains(t, out, "restart it after a change of the file")
	require.Contains(t, out, "Its certificate is valid until "+time.Now().UTC().AddDate(0, 0, 364).Format("2006"))
	require.NotContains(t, out, "hush")

	bin := t.TempDir()
	const program = `#!/bin/sh
echo "$(basename "$0")"
for arg; do echo "$arg"; done
`
	for _, name := range []string{"etcd", "kcp", "kedge-hub"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(program), 0o700))
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", out)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=/nowhere"}
	ran, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", ran)
	kubeconfig := "--kcp-kubeconfig=" + filepath.Join(kcp, "admin.kubeconfig")
	printed := strings.Split(strings.TrimSuffix(string(ran), "\n"), "\n")
	require.Equal(t, []string{
		"etcd", "--data-dir=" + kcp,
		"kcp", "start", "--root-directory=" + kcp, "--token-auth-file=" + tokens,
		"kedge-hub", "check", "--data-dir=" + dir, kubeconfig, "--leader-elect=false",
		"kedge-hub", "--data-dir=" + dir, "--listen-address=127.0.0.1:9443", "--admin-user=the boss",
		kubeconfig, "--leader-elect=false",
		"--database=sqlite:" + filepath.Join(dir, "records", "records.db"), "--policy-enforcement-window=0s",
	}, printed)
	hub := printed[slices.Index(printed, "check")+1:]
	asks, serves := hub[:slices.Index(hub, "kedge-hub")], hub[slices.Index(hub, "kedge-hub")+1:]
	for _, flags := range [][]string{asks, serves} {
		requireValid(t, flags)
	}
}

// requireValid requires that a hub starts with flags.
func requireValid(t *testing.T, flags []string) {
	t.Helper()
	o, set := options.New(), pflag.NewFlagSet("kedge-hub", pflag.ContinueOnError)
	o.AddFlags(set)
	require.NoError(t, set.Parse(flags), "%s", flags)
	_, err := o.Complete()
	require.NoError(t, err, "%s", flags)
}

// A database that the hub was told is the same one behind the external kcp.
func TestPromote_printsFlagsThatAHubTakes(t *testing.T) {
	t.Parallel()
	for database, alone := range map[string]bool{
		"sqlite:/records.db": true, "postgres://kedge@127.0.0.1/records": false, "none": false,
	} {
		dir := t.TempDir()
		folder(t, dir, "kcp")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "kcp", "admin.kubeconfig"), nil, 0o600))
		told := func(o *options.Options) { o.DataDir, o.Records.Database = dir, database }
		out, err := promoted(t, told, programs, "--database="+database)
		require.NoError(t, err)
		require.Equal(t, alone, strings.Contains(out, "--leader-elect=false"), out)
		_, last, ok := strings.Cut(out, "# 5. The hub, with its variables and its file of before.\nkedge-hub")
		require.True(t, ok, out)
		last, _, ok = strings.Cut(last, "\n#")
		require.True(t, ok, out)
		requireValid(t, strings.Fields(strings.ReplaceAll(last, "\\\n", "")))
	}
}

func TestPromote_keepsWhatTheHubIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "kcp"), 0o700))
	out, err := promoted(t, func(o *options.Options) {
		o.DataDir, o.Records.Database, o.Policy.EnforcementWindow = dir, "none", time.Second
	}, programs)
	require.NoError(t, err)
	require.NotContains(t, out, "--database")
	require.NotContains(t, out, "--policy-enforcement-window")
	require.Contains(t, out, "kcp accepts no static tokens")
	require.NotContains(t, out, "certificate")
}

func TestPromote_refusesOtherFolders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, o *options.Options)
		want   string
	}{
		"an external kcp": {func(t *testing.T, o *options.Options) {
			o.KCPKubeconfig = kcpAnswering(t, 200, "hush")
		}, "--kcp-kubeconfig: this hub has an external kcp"},
		"no folder": {func(_ *testing.T, o *options.Options) {
			o.DataDir = filepath.Join(o.DataDir, "none")
		}, "is no folder; name that of the hub"},
		"a file": {func(t *testing.T, o *options.Options) {
			o.DataDir = filepath.Join(o.DataDir, "file")
			require.NoError(t, os.WriteFile(o.DataDir, nil, 0o600))
		}, "is no folder; name that of the hub"},
		"an empty folder": {func(*testing.T, *options.Options) {}, "is not the folder of a hub"},
		"that of an external hub": {func(t *testing.T, o *options.Options) {
			folder(t, o.DataDir, "tls")
		}, "is the folder of a hub with an external kcp"},
		"an interrupted restore": {func(t *testing.T, o *options.Options) {
			folder(t, o.DataDir, "kcp", backup.Partial)
		}, "was interrupted"},
		"a restore that is not over": {func(t *testing.T, o *options.Options) {
			folder(t, o.DataDir, "kcp", backup.RestoreDir)
		}, "has not ended yet what ended after that; start the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := promoted(t, func(o *options.Options) { o.DataDir = dir; c.change(t, o) }, programs)
			require.ErrorContains(t, err, c.want)
			require.Empty(t, out)
		})
	}
	dir := t.TempDir()
	folder(t, dir, "kcp")
	for want, failure := range map[string]error{
		"--data-dir: a hub works with it": errors.New("a hub works with it"), "run this as the user of the hub": fs.ErrPermission,
	} {
		fails := func(connect.EmbeddedOptions, string) (etcd, kcp []string, err error) { return nil, nil, failure }
		out, err := promoted(t, func(o *options.Options) { o.DataDir = dir }, fails)
		require.ErrorContains(t, err, want)
		require.Empty(t, out)
	}
}

func folder(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
}
