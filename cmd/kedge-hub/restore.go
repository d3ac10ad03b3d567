package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/snapshot"
	"github.com/faroshq/kedge-hub/pkg/server"
)

// restoreCommand fills an empty data folder from a backup.
func restoreCommand(options *server.Options) *cobra.Command {
	restore := server.RestoreOptions{Etcd: snapshot.Restore}
	release := false
	cmd := &cobra.Command{
		Use:   "restore FILE|- | --release",
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

A restored hub purges nothing whose time has come until --release, which asks
the running hub and takes no file: look at heldPurges in the report first, and
undelete what people need.`,
		Example: `  kedge-hub restore kedge-hub-2026-11-24T02-00-00Z.tar.gz --data-dir /var/lib/kedge --replay /mnt/audit
  ssh store 'cat kedge.tar.gz' | kedge-hub restore - --config /etc/kedge-hub/hub.yaml --replay rights.jsonl
  kedge-hub restore --release --data-dir /var/lib/kedge`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, completed, err := complete(cmd, options)
			if err == nil {
				err = restoreArguments(release, args, restore)
			}
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			if release {
				return server.Release(ctx, completed, cmd.OutOrStdout())
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
	cmd.Flags().BoolVar(&release, "release", false, "Have the running hub, which was restored, purge again what is due.")
	return cmd
}

func restoreArguments(release bool, args []string, o server.RestoreOptions) error {
	switch {
	case release && (len(args) > 0 || len(o.Replay) > 0 || o.Database != "" || o.AcceptLostHistory):
		return errors.New("--release: takes nothing but the flags of the hub")
	case !release && len(args) == 0:
		return errors.New("name the file of the backup, or - for the standard input; several files of --replay need the flag each")
	}
	return nil
}
