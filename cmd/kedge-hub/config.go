package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/config"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/server/check"
)

func addFlags(cmd *cobra.Command, options *server.Options) {
	config.AddFlag(cmd.Flags())
	options.AddFlags(cmd.Flags())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w\n%w", err, errUsage) })
}

// complete returns the configuration that the command line, the environment and the file give, and
// a context with the logger. It is for commands that serve nothing.
func complete(cmd *cobra.Command, options *server.Options) (context.Context, server.Config, error) {
	return completeBy(server.Options.CompleteWithoutServing, cmd, options)
}

// completeServing is complete for a hub that serves, and for the check of its flags.
func completeServing(cmd *cobra.Command, options *server.Options) (context.Context, server.Config, error) {
	return completeBy(server.Options.Complete, cmd, options)
}

func completeBy(
	validate func(server.Options) (server.Config, error), cmd *cobra.Command, options *server.Options,
) (context.Context, server.Config, error) {
	if err := config.Load(cmd.Flags(), os.Environ()); err != nil {
		return nil, server.Config{}, err
	}
	completed, err := validate(*options)
	if err != nil {
		return nil, server.Config{}, err
	}
	logger, err := log.New(completed.LogFormat, completed.LogLevel, cmd.ErrOrStderr())
	if err != nil {
		return nil, server.Config{}, fmt.Errorf("--log-format, --log-level: %w", err)
	}
	// The loggers of the libraries are global, so this is called once, here.
	log.Bridge(logger)
	return log.Into(cmd.Context(), logger), completed, nil
}

// checkCommand checks a configuration without a start.
func checkCommand(options *server.Options) *cobra.Command {
	promote := false
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, and ask kcp, the identity providers and the databases",
		Long: `check takes the flags of kedge-hub, starts nothing, and prints what is wrong
and which flag mends it. It ends with 0 if a hub with these flags can serve,
with 1 if a file, kcp, an identity provider or a database cannot be used, and with
2 if a flag, a variable of the environment or the configuration file is invalid.

--promote prints how to go from the embedded kcp to an external one without
moving any data: the command lines of an etcd and a kcp of the linked versions
that serve the folder of --data-dir, and those of the hub in front of them.
People, tokens, sessions, Workspaces, UUIDs and cluster IDs stay, and the hub
with the embedded kcp serves the folder again if you go back. Stop the hub first,
and give all its flags, for kcp needs --token-file and --oidc-*. It ends with 1
if a hub or an etcd works with the folder, or if it has no data of kcp.`,
		Example: `  kedge-hub check --config /etc/kedge-hub/hub.yaml
  kedge-hub check --promote --data-dir /var/lib/kedge --token-file tokens.csv`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := givenArguments(cmd.Flags(), "data-dir", "promote")
			ctx, completed, err := completeServing(cmd, options)
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			if promote {
				return check.Promote(completed, embedded.Standalone, given, cmd.OutOrStdout())
			}
			return check.Run(ctx, completed, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, options)
	cmd.Flags().BoolVar(&promote, "promote", false,
		"Print how an external etcd and kcp serve the data of the embedded kcp in --data-dir.")
	return cmd
}

// givenArguments returns the arguments of the command line that set flags, without those that are named.
func givenArguments(fs *pflag.FlagSet, without ...string) (args []string) {
	fs.Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			args = append(args, config.Arguments(f)...)
		}
	})
	return args
}
