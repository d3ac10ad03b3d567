// Package subcommands makes the commands that have subcommands refuse what is none of them.
package subcommands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearby is the largest number of letters in which a suggestion differs from what was typed.
const nearby = 2

// Check makes each group of a program, cobra's completion and help included, refuse an argument: it names no
// command. The error has a suggestion and wraps usage, which marks an invalid command line. By default cobra
// prints the help of the group and returns no error, so that a script goes on. Without an argument, a group
// that does nothing itself prints its help.
//
// The program calls it when the tree is complete and its output is set.
func Check(root *cobra.Command, usage error) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, group := range Groups(root) {
		check(group, usage)
	}
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		if cmd, rest, _ := root.Find(args); isGroup(cmd) && len(rest) > 0 {
			return unknown(cmd, rest[0], usage)
		}
		return nil
	}
	// What follows a mistyped subcommand can have its flags, which the group does not know.
	failed := root.FlagErrorFunc()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); isGroup(cmd) && len(args) > 0 {
			return unknown(cmd, args[0], usage)
		}
		return failed(cmd, err)
	})
}

// Groups returns the commands of a tree that have subcommands and no arguments of their own, parents before
// children. A command has arguments if its Use names them.
func Groups(cmd *cobra.Command) (all []*cobra.Command) {
	if isGroup(cmd) {
		all = append(all, cmd)
	}
	for _, c := range cmd.Commands() {
		all = append(all, Groups(c)...)
	}
	return all
}

func isGroup(cmd *cobra.Command) bool { return cmd.HasSubCommands() && !strings.Contains(cmd.Use, " ") }

func check(group *cobra.Command, usage error) {
	idle := !group.Runnable()
	if idle {
		// Cobra does not look at the arguments of a command that does not run.
		group.RunE = func(*cobra.Command, []string) error { return pflag.ErrHelp }
	}
	group.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return unknown(cmd, args[0], usage)
		case idle:
			// Help comes before what a program does ahead of each command, which can fail.
			return pflag.ErrHelp
		}
		return nil
	}
}

func unknown(group *cobra.Command, name string, usage error) error {
	group.SuggestionsMinimumDistance = nearby
	suggestion := ""
	if near := group.SuggestionsFor(name); len(near) > 0 {
		suggestion = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%q is no command of %s%s; %w", name, group.CommandPath(), suggestion, usage)
}
