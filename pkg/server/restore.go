package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

// RestoreOptions are those of Restore.
type RestoreOptions struct {
	// From is a backup, or - for the standard input.
	From string
	// Replay are files of the audit logs of the lost hub, and folders with such.
	Replay []string
	// Database is the records database of the lost hub: a file, the URL of a PostgreSQL, or none. If it is empty, a
	// PostgreSQL of the configuration is that.
	Database string
	// AcceptLostHistory lets the hub serve though not all that ended after the backup is known.
	AcceptLostHistory bool
	// Etcd makes the data of the embedded etcd.
	Etcd backup.RestoreEtcd
}

// Restore fills an empty data folder from a backup, and leaves there what its hub has to end before it serves. It starts
// nothing. It fails if that hub would not serve.
func Restore(ctx context.Context, c Config, o RestoreOptions, in io.Reader, out io.Writer) error {
	if !c.Embedded {
		return errors.New("this is about an embedded kcp: an external one is restored by its own means; " +
			"the guide of kedge-hub, deploy/README.md, says in which order (Backup and restore)")
	}
	files, err := chainFiles(o.Replay)
	if err != nil {
		return fmt.Errorf("--replay: %w", err)
	}
	stored, err := lostRecords(ctx, c, o.Database)
	if err != nil {
		return err
	}
	if stored != nil {
		defer func() { _ = stored.Close() }()
	}
	if o.From != "-" {
		f, err := os.Open(o.From)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	m, err := backup.Unpack(in, c.DataDir, o.Etcd)
	if err != nil {
		return err
	}
	order := restore.Order{BackupAt: m.Time, Heads: m.Heads, Ended: m.Ended, AcceptLostHistory: o.AcceptLostHistory}
	if err := place(ctx, c.DataDir, order, files, stored); err != nil {
		return fmt.Errorf("%s is filled, and its hub would not know what to end: %w; empty it, and restore again", c.DataDir, err)
	}
	if m.RecordsLeftOut != "" {
		fmt.Fprintf(out, "the backup does not have the records database: %s\n", m.RecordsLeftOut)
	}
	fmt.Fprintf(out, "%s: etcd at revision %d, as of %s, by kedge-hub %s\n", c.DataDir, m.Etcd.Revision, m.Time.Format(time.RFC3339Nano), m.Hub)
	placed, err := restore.Find(c.DataDir)
	if err != nil {
		return err
	}
	plan, err := restore.Read(*placed)
	if err != nil {
		return fmt.Errorf("%s is filled, and its hub will not start: %w; empty the folder first", c.DataDir, err)
	}
	for _, end := range plan.Ends {
		fmt.Fprintf(out, "replica %s: its audit log ends at event %d, %s; what ended later is not known\n", end.Replica, end.Seq, end.Time.Format(time.RFC3339Nano))
	}
	for _, unknown := range plan.Unknown {
		fmt.Fprintf(out, "not known, as you accepted: %s\n", unknown)
	}
	fmt.Fprintf(out, "the next start of kedge-hub ends %d times what ended after the backup, and then serves; "+
		"%d times something was given after it, which is lost: %s lists all of that\n", len(plan.Steps), len(plan.Lost), restore.ReportFile(c.DataDir))
	return nil
}

// lostRecords opens the records database of the lost hub, and makes sure that it answers: nothing is filled for one that
// cannot be read. It is nil if there is none.
func lostRecords(ctx context.Context, c Config, named string) (*records.DB, error) {
	o, flag := c.Records.Records(), "--database"
	switch {
	case named == records.None, named == "" && !strings.HasPrefix(o.URL, "postgres"):
		return nil, nil
	case strings.HasPrefix(named, "postgres://"), strings.HasPrefix(named, "postgresql://"):
		o.URL, flag = named, "--replay-database"
	case named != "":
		path, err := filepath.Abs(named)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return nil, fmt.Errorf("--replay-database: %w", err)
		}
		o.URL, flag = "sqlite:"+path, "--replay-database"
	}
	db, err := records.Open(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if _, err := db.Heads(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w; --replay-database none does without it", flag, err), db.Close())
	}
	return db, nil
}

// place leaves the Order in a data folder, with copies of the files, and with what the records database has of the time
// since the backup.
func place(ctx context.Context, dir string, o restore.Order, files []string, stored *records.DB) (err error) {
	if stored == nil {
		return restore.Place(dir, o, files)
	}
	f, err := os.CreateTemp(filepath.Join(dir, backup.RestoreDir), "records-*.jsonl")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if err := errors.Join(stored.Rights(ctx, o.Heads, o.Ended, o.BackupAt.Add(-restore.OnItsWay), f), f.Close()); err != nil {
		return err
	}
	return restore.Place(dir, o, append(slices.Clone(files), f.Name()))
}

// chainFiles are the files, and those of the chain of rights in the folders, that are named.
func chainFiles(named []string) (files []string, err error) {
	for _, name := range named {
		switch info, err := os.Stat(name); {
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			files = append(files, name)
		case !info.IsDir():
			return nil, fmt.Errorf("%s is neither a file nor a folder", name)
		default:
			found, err := audit.Files(filepath.Join(name, filepath.Base(audit.DefaultFile(name))))
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%s has no %s", name, filepath.Base(audit.DefaultFile(name)))
			}
			files = append(files, found...)
		}
	}
	return files, nil
}

// Release has the hub that runs with the data folder purge again.
func Release(ctx context.Context, c Config, out io.Writer) error {
	answer, err := askLocal(ctx, localSocket(c), http.MethodPost, releasePath, patience)
	switch {
	case errors.Is(err, errNoHub):
		return fmt.Errorf("%w; start it first", err)
	case err != nil:
		return fmt.Errorf("ask the running hub: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return fmt.Errorf("the running hub says: %s", cmp.Or(strings.TrimSpace(string(text)), answer.Status))
	}
	fmt.Fprintln(out, "what is due is purged from now on")
	return nil
}
