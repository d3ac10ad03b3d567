package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/faroshq/kedge-hub/pkg/server"
)

// backupCommand saves the state of a running hub.
func backupCommand(options *server.Options) *cobra.Command {
	backup := server.BackupOptions{}
	var rate string
	cmd := &cobra.Command{
		Use:   "backup FILE|FOLDER|-",
		Short: "Save the state of the running hub with its embedded kcp",
		Long: `backup asks the hub that runs with this --data-dir for a snapshot of the
embedded etcd, the certificates and keys in the data folder, the records
database where it is in the data folder, and a manifest, and writes them to a
file that only you can read. The hub goes on serving: this command runs with a
lower priority (nice 10) and takes --rate bytes a second, so 1 GiB takes four
minutes. Where nobody is served, --rate 0 takes less than one.

The file gets its name when it is whole and on the disk. In a folder its name
has the time in UTC, and --keep removes the oldest files with such names. With -
it goes to the standard output.

Not in it are the files that flags name, such as --token-file and
--session-key-file: save them with your configuration. Neither are the audit
files: a restore needs those of the lost hub, up to its end, to give nobody a
right back, so collect them elsewhere all the time.

The backup has every secret of the hub and of its tenants. --encrypt-to encrypts
it with age (https://age-encryption.org) for one who has the private key.`,
		Example: `  kedge-hub backup --data-dir /var/lib/kedge /mnt/backups --keep 14
  kedge-hub backup --data-dir /var/lib/kedge /mnt/backups --encrypt-to age1...
  kedge-hub backup --config /etc/kedge-hub/hub.yaml - | ssh store 'cat > kedge.tar.gz'`,
		Args: arguments(1, 1, "a file, a folder, or - for the standard output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, completed, err := complete(cmd, options)
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errUsage)
			}
			if backup.Keep < 0 || cmd.Flags().Changed("keep") && backup.Keep == 0 {
				return fmt.Errorf("--keep: must be 1 or more\n%w", errUsage)
			}
			size, err := resource.ParseQuantity(rate)
			if backup.Rate = size.Value(); err != nil || backup.Rate != 0 && backup.Rate < 1<<20 {
				return fmt.Errorf("--rate: %q is no size of 1Mi or more, such as 8Mi, and not 0\n%w", rate, errUsage)
			}
			backup.To = args[0]
			// The hub and its kcp, which serve people meanwhile, come first.
			lowerPriority()
			return server.Backup(ctx, completed, backup, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addFlags(cmd, options)
	cmd.Flags().IntVar(&backup.Keep, "keep", 0, "Number of backups that stay in FOLDER, the newest by their names. By default all stay.")
	cmd.Flags().StringVar(&rate, "rate", "4Mi", "Bytes that are taken from the hub in a second, before compression. 0 means as many as it sends.")
	cmd.Flags().StringArrayVar(&backup.EncryptTo, "encrypt-to", nil, "Public key of age to encrypt for. Can be given several times.")
	return cmd
}
