package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/server"
)

// lookTime is the time within which verify says that it cannot look.
const lookTime = 10 * time.Second

// verifyCommand compares what kcp has with what the hub would make of it.
func verifyCommand(options *server.Options) *cobra.Command {
	verify := server.VerifyOptions{Timeout: lookTime}
	output := ""
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare what is derived in kcp with what it follows from",
		Long: `verify reads kcp and compares Memberships, indexes, bindings, roles, the
admission policy, bots with their accounts and tokens, sessions, claims,
Organizations, Workspaces, logical clusters and spares. It prints every
difference that is there for three seconds, with both sides, and which
controller heals it or what to do by hand. It writes nothing.

It asks the hub that runs with this --data-dir. With --kcp-kubeconfig it reads
kcp itself if no hub runs there. Give it the flags of the hub.

--repair has the controllers of the running hub heal what they can, and looks
again. It ends with 0 if there is no difference (any more), with 1 if there is
one, and with 2 if it could not look.`,
		Example: `  kedge-hub verify --data-dir /var/lib/kedge
  kedge-hub verify --config /etc/kedge-hub/hub.yaml --repair
  kedge-hub verify --kcp-kubeconfig admin.kubeconfig -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, completed, err := complete(cmd, options)
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			switch output {
			case "text", "json":
				verify.JSON = output == "json"
			default:
				return fmt.Errorf("--output: %q is neither text nor json\n%w", output, errUsage)
			}
			return server.Verify(ctx, completed, verify, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, options)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "Form of the report: text or json.")
	cmd.Flags().BoolVar(&verify.Repair, "repair", false, "Have the controllers of the running hub heal what they can.")
	cmd.Flags().DurationVar(&verify.Timeout, "timeout", verify.Timeout,
		"Time within which kcp must have listed everything. A very large installation needs more.")
	return cmd
}
