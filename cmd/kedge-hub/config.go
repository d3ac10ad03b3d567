package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/config"
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
// a context with the logger.
func complete(cmd *cobra.Command, options *server.Options) (context.Context, server.Config, error) {
	if err := config.Load(cmd.Flags(), os.Environ()); err != nil {
		return nil, server.Config{}, err
	}
	completed, err := options.Complete()
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
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, and ask kcp and the identity provider",
		Long: `check takes the flags of kedge-hub, starts nothing, and prints what is wrong
and which flag mends it. It ends with 0 if a hub with these flags can serve,
with 1 if a file, kcp or the identity provider cannot be used, and with 2 if a
flag, a variable of the environment or the configuration file is invalid.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, completed, err := complete(cmd, options)
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			return check.Run(ctx, completed, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, options)
	return cmd
}
