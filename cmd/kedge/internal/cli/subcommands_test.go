package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/internal/subcommands"
)

// runAlone runs a command line on a computer that has nothing, not even an environment.
func runAlone(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(t.Context(), args, Streams{Out: &stdout, Err: &stderr}, Environment{})
	return code, stdout.String(), stderr.String()
}

// A script goes on after a 0: "kedge bots tokens revok CI ID && echo revoked".
func TestEveryGroup_refusesAMistypedSubcommand(t *testing.T) {
	t.Parallel()
	groups := subcommands.Groups((&app{}).root())
	require.Greater(t, len(groups), 15)
	for _, group := range groups {
		path := strings.Fields(group.CommandPath())[1:]
		for _, c := range group.Commands() {
			if !c.IsAvailableCommand() {
				continue
			}
			for _, more := range [][]string{nil, {"CI", "ID"}, {"CI", "--not-a-flag"}} {
				args := append(append(path[:len(path):len(path)], c.Name()+"x"), more...)
				code, out, errOut := runAlone(t, args...)
				require.Equal(t, 2, code, "%s: %s", args, errOut)
				require.Empty(t, out, args)
				said, near, _ := strings.Cut(errOut, ", did you mean ")
				require.Equal(t, `kedge: "`+c.Name()+`x" is no command of `+group.CommandPath(), said, args)
				require.Contains(t, near, c.Name(), args)
			}
		}
		code, out, errOut := runAlone(t, append(path, "--help")...)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "Available Commands:", group.CommandPath())
	}
}

func TestEveryGroup_thatDoesNothingPrintsItsHelp(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "bots tokens", "bots trust", "users", "admin", "admin quota", "completion"} {
		code, out, errOut := runAlone(t, strings.Fields(path)...)
		require.Zero(t, code, "%s: %s", path, errOut)
		require.Contains(t, out, "Available Commands:", path)
	}
}

// What has subcommands and takes arguments, too, checks them itself.
func TestCommandsWithSubcommands_thatTakeArgumentsRefuseOthers(t *testing.T) {
	t.Parallel()
	var found []string
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasSubCommands() && strings.Contains(cmd.Use, " ") {
			found = append(found, cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk((&app{}).root())
	require.Equal(t, []string{"kedge admin sessions"}, found)
	code, _, errOut := runAlone(t, "admin", "sessions", "edn", "bob", "--all")
	require.Equal(t, 2, code, errOut)
	code, _, errOut = runAlone(t, "admin", "sessions", "edn", "bob")
	require.Equal(t, 2, code, errOut)
}
