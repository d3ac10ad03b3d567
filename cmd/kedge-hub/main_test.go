package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/internal/subcommands"
)

// An invalid command line ends with 2 and says what to give, whatever is wrong with it.
func TestCommand_refusesANumberOfArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"backup"}, "kedge-hub backup takes a file, a folder, or - for the standard output"},
		{[]string{"backup", "a", "b"}, "kedge-hub backup takes a file, a folder, or - for the standard output; it got 2 arguments"},
		{[]string{"restore", "a", "b"}, "kedge-hub restore takes one file"},
		{[]string{"bakcup"}, `"bakcup" is no command of kedge-hub, did you mean backup?; see kedge-hub --help`},
		{[]string{"audit", "verfy", "--data-dir", "x"}, `"verfy" is no command of kedge-hub audit, did you mean verify?`},
		{[]string{"check", "a"}, "kedge-hub check takes flags alone"},
		{[]string{"verify", "a"}, "kedge-hub verify takes flags alone"},
		{[]string{"version", "a"}, "kedge-hub version takes flags alone"},
	} {
		err := run(t, c.args...)
		require.ErrorIs(t, err, errUsage, c.args)
		require.ErrorContains(t, err, c.says)
	}
}

// setImageEnvironment sets the addresses that the image sets for every command.
func setImageEnvironment(t *testing.T) {
	t.Helper()
	source, err := os.ReadFile("../../deploy/image/main.go")
	require.NoError(t, err)
	variables := regexp.MustCompile(`"(KEDGE_HUB_\w+)=([^"]+)",`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, variables, 2, "the two listeners")
	for _, v := range variables {
		t.Setenv(v[1], v[2])
	}
}

// run runs a command line and returns its error.
func run(t *testing.T, args ...string) error {
	t.Helper()
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return cmd.ExecuteContext(t.Context())
}

// Commands that serve nothing find the mistake of their own flags, and ask for no URL of clients.
func TestCommands_inTheImageNeedTheURLOnlyToServe(t *testing.T) { //nolint:paralleltest // It sets the environment.
	setImageEnvironment(t)
	dir := "--data-dir=" + t.TempDir()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"audit", "verify", dir, "--head=x"}, "--head"},
		{[]string{"backup", dir, "--rate=1", "-"}, "--rate"},
		{[]string{"verify", dir, "--output=yaml"}, "--output"},
		{[]string{"restore", dir}, "name the file of the backup"},
	} {
		err := run(t, c.args...)
		require.ErrorContains(t, err, c.says, c.args)
		require.NotContains(t, err.Error(), "--external-url", c.args)
	}
	for _, args := range [][]string{{dir}, {"check", dir}, {"check", "--promote", dir}} {
		err := run(t, args...)
		require.ErrorIs(t, err, errUsage, args)
		require.ErrorContains(t, err, "--external-url: is required", args)
	}
}

// A script goes on after a 0: "kedge-hub audit verfy --data-dir /var/lib/kedge && echo whole".
func TestEveryGroup_refusesAMistypedSubcommand(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, group := range subcommands.Groups(command()) {
		paths = append(paths, group.CommandPath())
		for _, c := range group.Commands() {
			if !c.IsAvailableCommand() {
				continue
			}
			for _, more := range [][]string{nil, {"FILE"}, {"FILE", "--not-a-flag"}} {
				cmd := command()
				cmd.SetArgs(append(append(strings.Fields(group.CommandPath())[1:], c.Name()+"x"), more...))
				err := cmd.ExecuteContext(t.Context())
				require.ErrorIs(t, err, errUsage, "%s %s", group.CommandPath(), c.Name())
				said, near, _ := strings.Cut(err.Error(), ", did you mean ")
				require.Equal(t, `"`+c.Name()+`x" is no command of `+group.CommandPath(), said)
				require.Contains(t, near, c.Name())
			}
		}
	}
	require.ElementsMatch(t, []string{"kedge-hub", "kedge-hub audit", "kedge-hub completion"}, paths)
	var out bytes.Buffer
	cmd := command()
	cmd.SetArgs([]string{"audit"})
	cmd.SetOut(&out)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Contains(t, out.String(), "Available Commands:")
}
