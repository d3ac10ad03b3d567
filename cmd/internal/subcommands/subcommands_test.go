package subcommands_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/cmd/internal/subcommands"
)

var (
	errUsage = errors.New("see --help")
	errAhead = errors.New("what comes ahead of each command failed")
)

// program has a group that does nothing itself, one that does, and a command with subcommands and arguments.
func program(out *bytes.Buffer) *cobra.Command {
	leaf := func(use string) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: "does", RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Print("ran " + cmd.CommandPath())
			return nil
		}}
		cmd.Flags().Bool("all", false, "all")
		return cmd
	}
	root := &cobra.Command{
		Use: "p", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.HasSubCommands() {
				return nil
			}
			return errAhead
		},
	}
	root.SetOut(out)
	root.SetErr(out)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errors.Join(err, errUsage) })
	tokens, list, sessions := &cobra.Command{Use: "tokens", Short: "Tokens"}, leaf("orgs"), leaf("sessions USER")
	tokens.AddCommand(leaf("revoke ID"), leaf("create"))
	list.AddCommand(leaf("use"), leaf("list"))
	sessions.AddCommand(leaf("end"))
	root.AddCommand(tokens, list, sessions)
	subcommands.Check(root, errUsage)
	return root
}

func TestCheck_refusesWhatIsNoSubcommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		// wraps is the error, if there is one; says is in it, or else in the output.
		wraps error
		says  string
	}{
		"mistyped":                     {"tokens revok ID", errUsage, "is no command of p tokens, did you mean revoke?; see --help"},
		"mistyped, with its flag":      {"tokens revok ID --all", errUsage, `"revok" is no command of p tokens, did you`},
		"two are near":                 {"orgs lse", errUsage, "did you mean list or use?"},
		"nothing is near":              {"tokens nowhere", errUsage, `"nowhere" is no command of p tokens; see --help`},
		"of a group that runs":         {"orgs lst --all", errUsage, `"lst" is no command of p orgs`},
		"of the program":               {"token revoke", errUsage, `"token" is no command of p, did you mean tokens?`},
		"of completion":                {"completion bsh", errUsage, "did you mean bash or fish or zsh?"},
		"help about it":                {"help tokens revok", errUsage, `"revok" is no command of p tokens`},
		"help about nothing":           {"help nowhere", errUsage, `"nowhere" is no command of p; see --help`},
		"a flag alone":                 {"tokens --nowhere", errUsage, "unknown flag: --nowhere"},
		"a wrong flag of a subcommand": {"tokens revoke ID --nowhere", errUsage, "unknown flag: --nowhere"},
		"a flag beside an argument":    {"sessions bob --nowhere", errUsage, "unknown flag: --nowhere"},
		"no subcommand":                {"tokens", nil, "Available Commands:"},
		"no command":                   {"", nil, "Available Commands:"},
		"help of a group":              {"tokens revok --help", nil, "Available Commands:"},
		"help about a group":           {"help tokens", nil, "Available Commands:"},
		"help about a command":         {"help tokens revoke ID", nil, "p tokens revoke ID"},
		"a group that runs":            {"orgs --all", errAhead, ""},
		"an argument":                  {"sessions bob", errAhead, ""},
		"a subcommand":                 {"tokens revoke ID --all", nil, "ran p tokens revoke"},
		"a script of completion":       {"completion bash", nil, "bash completion"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			root := program(&out)
			root.SetArgs(strings.Fields(c.args))
			err := root.Execute()
			if c.wraps == nil {
				require.NoError(t, err)
				require.Contains(t, out.String(), c.says)
				return
			}
			require.ErrorIs(t, err, c.wraps)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, out.String())
		})
	}
}

func TestGroups_areWithoutCommandsThatHaveArguments(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, group := range subcommands.Groups(program(&bytes.Buffer{})) {
		paths = append(paths, group.CommandPath())
	}
	require.ElementsMatch(t, []string{"p", "p completion", "p orgs", "p tokens"}, paths)
}
