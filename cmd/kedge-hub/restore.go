package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/snapshot"
	"github.com/faroshq/kedge-hub/pkg/server"
)

// restoreCommand fills an empty data folder from a backup.
func restoreCommand(options *server.Options) *cobra.Command {
	restore := server.RestoreOptions{Etcd: snapshot.Restore}
	command := restoreModes{}
	cmd := &cobra.Command{
		Use:   "restore FILE|- | --external | --report | --release",
		Short: "Fill an empty data folder from a backup, so that nobody gets a right back",
		Long: `restore fills the empty --data-dir from a file of kedge-hub backup, or from the
standard input, and starts nothing. It never touches a folder that has anything.
An encrypted backup is decrypted first: age --decrypt --identity KEYFILE FILE.

What ended after the backup was made (members who were removed or demoted,
revoked tokens, sessions, answered invitations, deletions) is not in it. The
audit log of the lost hub has it, in rights.jsonl and rights-*.jsonl: name these
files, or the folder with them, with --replay, of every replica. The records
database has the same events, at most some seconds late: a PostgreSQL in
--database is read by itself, and --replay-database names the file of a lost data
folder (records/records.db). Both together are best. The next start of kedge-hub
is in restore mode: it ends again what ended, answers every request with 503
meanwhile, and then serves by itself. What was given after the backup is lost. The report,
restore-report.json in the data folder, lists what was ended, what could not be,
what is lost, and Organizations that have no admin left.

Where the audit log is missing, has a gap, was changed, or does not reach back
to the backup, the hub does not start: it cannot know whom it would let in
again. --accept-lost-history lets it serve nevertheless.

An external kcp is restored by its own means, while all replicas are stopped. Then
--external writes into it what its hubs have to end before they serve, and takes
no file: --backup-at is when the earliest snapshot of all shards was begun, and
--replay names the audit log of every replica. All replicas are in restore mode
from their next start on, until one of them has ended everything. --report prints
the report, also while they do.

A restored hub purges nothing whose time has come until --release, which asks
the running hub, or the external kcp, and takes no file: look at heldPurges in
the report first, and undelete what people need.`,
		Example: `  kedge-hub restore kedge-hub-2026-11-24T02-00-00Z.tar.gz --data-dir /var/lib/kedge --replay /mnt/audit
  ssh store 'cat kedge.tar.gz' | kedge-hub restore - --config /etc/kedge-hub/hub.yaml --replay rights.jsonl
  kedge-hub restore --external --kcp-kubeconfig admin.kubeconfig --backup-at 2026-11-24T02:00:00Z --replay /mnt/audit-1 --replay /mnt/audit-2
  kedge-hub restore --report --kcp-kubeconfig admin.kubeconfig
  kedge-hub restore --release --data-dir /var/lib/kedge`,
		Args: arguments(0, 1, "one file, or - for the standard input, and each file of --replay with the flag"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, completed, err := complete(cmd, options)
			if err == nil {
				restore.BackupAt, err = command.check(args, restore)
			}
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			switch {
			case command.release:
				return server.Release(ctx, completed, cmd.OutOrStdout())
			case command.report:
				return server.PrintReport(ctx, completed, cmd.OutOrStdout())
			case command.external:
				return server.RestoreExternal(ctx, completed, restore, cmd.OutOrStdout())
			}
			restore.From = args[0]
			return server.Restore(ctx, completed, restore, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	addFlags(cmd, options)
	cmd.Flags().StringArrayVar(&restore.Replay, "replay", nil, "File of the audit log of the lost hub, or folder with its rights.jsonl. Can be given several times.")
	cmd.Flags().StringVar(&restore.Database, "replay-database", "",
		"Records database of the lost hub, to read what ended after the backup: a file, postgres://USER@HOST/NAME, or none. By default a PostgreSQL of --database.")
	cmd.Flags().BoolVar(&restore.AcceptLostHistory, "accept-lost-history", false,
		"Let the hub serve though it cannot know all that ended after the backup: people can get back what they lost.")
	cmd.Flags().BoolVar(&command.external, "external", false,
		"Have the hubs of the external kcp of --kcp-kubeconfig, which was restored by its own means, end what ended after its backup.")
	cmd.Flags().StringVar(&command.backupAt, "backup-at", "",
		"With --external: when the earliest snapshot of all shards of kcp was begun, such as 2026-11-24T02:00:00Z. "+
			"An earlier time is safe, a later one is not.")
	cmd.Flags().BoolVar(&command.report, "report", false, "Print the report of the last restore as JSON.")
	cmd.Flags().BoolVar(&command.release, "release", false, "Have the running hub, which was restored, purge again what is due.")
	return cmd
}

// restoreModes are the flags that say what the command does.
type restoreModes struct {
	external, report, release bool
	backupAt                  string
}

// check returns the time of the backup. It fails if the arguments do not fit together.
func (m restoreModes) check(args []string, o server.RestoreOptions) (at time.Time, err error) {
	switch replays := len(o.Replay) > 0 || o.Database != "" || o.AcceptLostHistory; {
	case (m.release || m.report) && (m.release && m.report || m.external || m.backupAt != "" || len(args) > 0 || replays):
		return at, errors.New("--release, --report: each takes nothing but the flags of the hub")
	case m.release || m.report:
		return at, nil
	case m.external && len(args) > 0:
		return at, errors.New("--external: takes no file; restore kcp by its own means first. Several files of --replay need the flag each")
	case m.external:
		if at, err = time.Parse(time.RFC3339, m.backupAt); err != nil {
			err = fmt.Errorf("--backup-at: with --external, give the time at which the earliest snapshot of all shards of kcp was begun, "+
				"such as 2026-11-24T02:00:00Z: %w", err)
		}
		return at, err
	case m.backupAt != "":
		return at, errors.New("--backup-at: the time is in the file; the flag is for --external")
	case len(args) == 0:
		return at, errors.New("name the file of the backup, or - for the standard input; several files of --replay need the flag each")
	}
	return at, nil
}
