package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/server/check"
)

// auditCommand is about the files of the audit log.
func auditCommand(options *server.Options) *cobra.Command {
	var heads []string
	verify := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Check that nothing was cut out of the audit log or changed in it",
		Long: `verify walks the chains of the audit log and prints every event that is
missing, changed, doubled or moved. Without files it takes those of the flags
of kedge-hub and the table in --database, also beside a running hub. The ends
that the database knows are compared with those of the files. It ends with 0 if the chains are whole,
with 1 if not, and with 2 if it cannot read them. That the end of a chain was
cut off shows only beside a head that was recorded: the hub writes "audit head"
to its log, and the heads of all replicas into kcp, every hour and when it
stops. verify asks the hub that runs with this --data-dir for those in kcp, or
reads kcp itself with --kcp-kubeconfig.`,
		Example: `  kedge-hub audit verify --data-dir /var/lib/kedge
  kedge-hub audit verify rights-2026-11-21T04-05-01.000.jsonl rights.jsonl`,
		RunE: func(cmd *cobra.Command, files []string) error {
			_, completed, err := complete(cmd, options)
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			return check.Audit(cmd.Context(), completed, files, heads, server.RecordedHeads, cmd.OutOrStdout())
		},
	}
	addFlags(verify, options)
	verify.Flags().StringArrayVar(&heads, "head", nil, "End of a chain that was recorded, as REPLICA:LOG:SEQ:HASH: the chain must reach it. Can be given several times.")
	cmd := &cobra.Command{Use: "audit", Short: "Check the audit log"}
	cmd.AddCommand(verify)
	return cmd
}
