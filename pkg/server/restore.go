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
	"github.com/faroshq/kedge-hub/pkg/restore/external"
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
	// BackupAt is when the backup of an external kcp was begun.
	BackupAt time.Time
	// AcceptLostHistory lets the hub serve though not all that ended after the backup is known.
	AcceptLostHistory bool
	// Etcd makes the data of the embedded etcd.
	Etcd backup.RestoreEtcd
}

// Restore fills an empty data folder from a backup, and leaves there what its hub has to end before it serves. It starts
// nothing. It fails if that hub would not serve.
func Restore(ctx context.Context, c Config, o RestoreOptions, in io.Reader, out io.Writer) error {
	if !c.Embedded {
		return errors.New("this is about an embedded kcp: an external one is restored by its own means, and then by --external; " +
			"the guide of kedge-hub, deploy/README.md, says in which order (Backup and restore)")
	}
	files, stored, closing, err := o.history(ctx, c)
	if err != nil {
		return err
	}
	defer closing()
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
	order.Doubts = endsLost(files)
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
	printEnds(out, plan)
	fmt.Fprintf(out, "the next start of kedge-hub ends %d times what ended after the backup, and then serves; "+
		"%d times something was given after it, which is lost: %s lists all of that\n", len(plan.Steps), len(plan.Lost), restore.ReportFile(c.DataDir))
	return nil
}

// history returns the files of the audit log of the lost hub, and opens its records database, which is nil if there is none.
// Without an error the caller calls closing.
func (o RestoreOptions) history(ctx context.Context, c Config) (files []string, stored *records.DB, closing func(), err error) {
	if files, err = chainFiles(o.Replay); err != nil {
		return nil, nil, nil, fmt.Errorf("--replay: %w", err)
	}
	if stored, err = lostRecords(ctx, c, o.Database); err != nil {
		return nil, nil, nil, err
	}
	return files, stored, func() {
		if stored != nil {
			_ = stored.Close()
		}
	}, nil
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

// printEnds says until when the past is known.
func printEnds(out io.Writer, plan restore.Plan) {
	for _, end := range plan.Ends {
		fmt.Fprintf(out, "replica %s: its audit log ends at event %d, %s; what ended later is not known\n", end.Replica, end.Seq, end.Time.Format(time.RFC3339Nano))
	}
	for _, unknown := range plan.Unknown {
		fmt.Fprintf(out, "not known, as you accepted: %s\n", unknown)
	}
}

// place leaves the Order in a data folder, with copies of the files, and with what the records database has of the time
// since the backup.
func place(ctx context.Context, dir string, o restore.Order, files []string, stored *records.DB) error {
	return withRecords(ctx, filepath.Join(dir, backup.RestoreDir), o, files, stored, func(files []string) error {
		return restore.Place(dir, o, files)
	})
}

// readOrder returns the Plan of an Order with files, and with what the records database has.
func readOrder(ctx context.Context, o restore.Order, files []string, stored *records.DB) (plan restore.Plan, err error) {
	return plan, withRecords(ctx, "", o, files, stored, func(files []string) error {
		o.Files = files
		plan, err = restore.Read(o)
		return err
	})
}

// withRecords calls do with the files, and with one of the lines that the records database has of the time since the
// backup, which is in a folder for the time of the call.
func withRecords(ctx context.Context, dir string, o restore.Order, files []string, stored *records.DB, do func(files []string) error) (err error) {
	if stored == nil {
		return do(files)
	}
	f, err := os.CreateTemp(dir, "records-*.jsonl")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	heads := slices.Concat(o.Heads, o.Quiet)
	if err := stored.Rights(ctx, heads, o.Ended, o.BackupAt.Add(-restore.OnItsWay), f); err != nil {
		return errors.Join(fmt.Errorf("--replay-database, or else --database: %w; --replay-database none does without it", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return do(append(slices.Clone(files), f.Name()))
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

// endsLost says of which files the hub could not write what followed, and has not been able to say so in them since.
func endsLost(files []string) (doubts []string) {
	for _, file := range files {
		if audit.EndLost(file) {
			doubts = append(doubts, file+": events behind its end could not be written")
		}
	}
	return doubts
}

// released is what an operator is told whose hubs purge again.
const released = "what is due is purged from now on"

// Release has the hub that runs with the data folder purge again, with all replicas of it. Without one it asks an external kcp.
func Release(ctx context.Context, c Config, out io.Writer) error {
	answer, err := askLocal(ctx, localSocket(c), http.MethodPost, releasePath, patience)
	switch {
	case errors.Is(err, errNoHub) && !c.Embedded:
		err := askBehind(ctx, c, func(ctx context.Context, b behind) error { return external.New(b.clients, b.cluster).Release(ctx) })
		if err == nil {
			fmt.Fprintln(out, released)
		}
		return err
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
	fmt.Fprintln(out, released)
	return nil
}
