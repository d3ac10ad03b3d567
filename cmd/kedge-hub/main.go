// Command kedge-hub runs the hub: organizations, workspaces and memberships in front of an
// embedded or an external kcp.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/internal/subcommands"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/server/check"
	"github.com/faroshq/kedge-hub/pkg/verify"
	"github.com/faroshq/kedge-hub/pkg/version"
)

func main() {
	// The first signal drains the hub. The second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kedge-hub:", err)
		if errors.Is(err, errUsage) || errors.Is(err, check.ErrNotLooked) || errors.Is(err, verify.ErrNotLooked) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func newKCP(o connect.EmbeddedOptions) (connect.KCP, error) {
	return embedded.New(o)
}

var errUsage = errors.New("see kedge-hub --help")

// arguments refuses a number of arguments outside of a range. what says which ones a command takes.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s takes %s; it got %d arguments\n%w", cmd.CommandPath(), what, len(args), errUsage)
		}
		return nil
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is no flag; %s takes flags alone\n%w", args[0], cmd.CommandPath(), errUsage)
	}
	return nil
}

func command() *cobra.Command {
	options := server.NewOptions()
	cmd := &cobra.Command{
		Use:   "kedge-hub",
		Short: "Organizations, workspaces and memberships in front of a kcp",
		Long: `kedge-hub puts organizations, workspaces and memberships in front of a kcp
workspace tree, so that people can share it safely: a REST API under
/api, and kubectl under /clusters. It runs an embedded kcp below --data-dir
unless --kcp-kubeconfig gives an external one.`,
		Example: `  # with an embedded kcp, for people with static tokens
  kedge-hub --data-dir /var/lib/kedge --token-file tokens.csv

  # with an external kcp
  kedge-hub --kcp-kubeconfig admin.kubeconfig --token-file tokens.csv --external-url https://hub.example.com`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, completed, err := completeServing(cmd, options)
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			return server.Run(ctx, completed, newKCP, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, options)
	cmd.AddCommand(auditCommand(options), backupCommand(options), checkCommand(options), restoreCommand(options), verifyCommand(options), &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "kedge-hub", version.String()) },
	})
	subcommands.Check(cmd, errUsage)
	return cmd
}
