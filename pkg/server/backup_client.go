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
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"golang.org/x/time/rate"

	"github.com/faroshq/kedge-hub/pkg/backup"
)

// BackupOptions are those of Backup.
type BackupOptions struct {
	// To is a file, a folder, or - for the standard output.
	To string
	// Keep is how many backups stay in a folder; 0 means all.
	Keep int
	// Rate is how many bytes are taken from the hub in a second; 0 means as many as it sends.
	Rate int64
	// EncryptTo are public keys of age. Without one the backup is not encrypted.
	EncryptTo []string
}

// errNotFolder is about the arguments of Backup.
var errNotFolder = errors.New("--keep: this is no folder; old backups are removed from a folder alone")

// Backup has the hub that runs with the data folder make a backup, and stores it. It prints what it made to out, or to
// notes if the backup itself goes to out.
func Backup(ctx context.Context, c Config, o BackupOptions, out, notes io.Writer) error {
	if !c.Embedded {
		return errors.New("this is about an embedded kcp: an external one is saved by its own means; " +
			"the guide of kedge-hub, deploy/README.md, says what to save and in which order (Backup and restore)")
	}
	info, err := os.Stat(o.To)
	folder := o.To != "-" && err == nil && info.IsDir()
	if o.Keep != 0 && !folder {
		return errNotFolder
	}
	recipients, err := backup.Recipients(o.EncryptTo)
	if err != nil {
		return fmt.Errorf("--encrypt-to: %w", err)
	}
	name := o.To
	if folder {
		name = filepath.Join(o.To, backup.NameAt(time.Now(), len(recipients) > 0))
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s is there already; repeat this", name)
		}
	}
	trailer, err := fetch(ctx, c, func(answer *http.Response, to io.Writer) error {
		answer.Body = &taken{ReadCloser: answer.Body, ctx: ctx, rate: limiterOf(o.Rate), notes: notes, told: time.Now()}
		return receive(answer, to, recipients)
	}, name, out, notes)
	if err != nil {
		return err
	}
	if o.To == "-" {
		out = notes
	}
	at := trailer.Get(timeTrailer)
	fmt.Fprintf(out, "%s: etcd at revision %s, as of %s\n", name, trailer.Get(revisionTrailer), at)
	if warning := trailer.Get(warningTrailer); warning != "" {
		fmt.Fprintf(notes, "warning: %s\n", warning)
	}
	if err := acknowledge(ctx, c, at); err != nil {
		return fmt.Errorf("the backup is made; tell the hub: %w", err)
	}
	if o.Keep == 0 {
		return nil
	}
	removed, err := backup.Prune(o.To, o.Keep, filepath.Base(name))
	for _, old := range removed {
		fmt.Fprintf(out, "%s: removed\n", filepath.Join(o.To, old))
	}
	if err != nil {
		return fmt.Errorf("the backup is made; remove older ones: %w", err)
	}
	return nil
}

// errPasses is a failure of a backup after which another one can begin at once: the hub has it wait for its turn.
var errPasses = errors.New("the hub had to end it")

// fetch gets a backup and stores it under a name, or writes it to out if that is -. A file is begun again where a
// defragmentation of etcd ended the backup; what went to out stays there.
func fetch(ctx context.Context, c Config, receive func(*http.Response, io.Writer) error, name string, out, notes io.Writer) (http.Header, error) {
	for attempt := 1; ; attempt++ {
		answer, err := askForBackup(ctx, c)
		if err != nil {
			return nil, err
		}
		if name == "-" {
			err = receive(answer, out)
		} else {
			err = backup.Replace(name, func(to io.Writer) error { return receive(answer, to) })
		}
		_ = answer.Body.Close()
		if err == nil || name == "-" || attempt == maxAttempts || !errors.Is(err, errPasses) {
			return answer.Trailer, explained(err, name)
		}
		fmt.Fprintf(notes, "%v; it begins again\n", err)
	}
}

// explained says what to do about a disk that has no room for a backup. Everything that the hub says is text, so this
// disk is that of the operator.
func explained(err error, name string) error {
	switch {
	case !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT):
		return err
	case name == "-":
		return fmt.Errorf("there is no room for the backup: %w; what was written is none: remove it, and repeat this with more room", err)
	}
	return fmt.Errorf("%s has no room for the backup: %w; nothing of it is left there: make room, such as by removing old backups, "+
		"or name another place", filepath.Dir(name), err)
}

// patience is how long the hub has to begin its answer.
const patience = 10 * time.Second

func askForBackup(ctx context.Context, c Config) (*http.Response, error) {
	answer, err := askLocal(ctx, localSocket(c), http.MethodPost, backupPath, patience)
	switch {
	case errors.Is(err, errNoHub):
		return nil, fmt.Errorf("%w; start it first. The folder of a hub that is stopped is copied as it is", err)
	case err != nil:
		return nil, fmt.Errorf("ask the running hub: %w", err)
	case answer.StatusCode == http.StatusOK:
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	return nil, fmt.Errorf("the running hub says: %s", cmp.Or(strings.TrimSpace(string(text)), answer.Status))
}

const (
	// taking is the most that is taken from the hub at once: its neighbours wait no longer than for this.
	taking = 64 << 10
	// tellEvery is how often a backup that goes on says how far it is.
	tellEvery = 10 * time.Second
)

// limiterOf returns the limit of a rate in bytes per second.
func limiterOf(rateInBytes int64) *rate.Limiter {
	if rateInBytes == 0 {
		return rate.NewLimiter(rate.Inf, taking)
	}
	return rate.NewLimiter(rate.Limit(rateInBytes), taking)
}

// taken takes an answer no faster than at a rate: the hub reads its store for it while it serves people.
type taken struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // it lives as long as the answer
	rate  *rate.Limiter
	notes io.Writer
	bytes int64
	told  time.Time
}

// Read implements io.Reader.
func (t *taken) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p[:min(len(p), taking)])
	t.bytes += int64(n)
	if now := time.Now(); now.Sub(t.told) >= tellEvery {
		t.told = now
		fmt.Fprintf(t.notes, "%d MiB so far\n", t.bytes>>20)
	}
	if waited := t.rate.WaitN(t.ctx, n); waited != nil {
		return n, waited
	}
	return n, err
}

// remembering remembers why it could not be written to: age has the reason as a text.
type remembering struct {
	to     io.Writer
	failed error
}

// Write implements io.Writer.
func (r *remembering) Write(raw []byte) (int, error) {
	n, err := r.to.Write(raw)
	r.failed = cmp.Or(r.failed, err)
	return n, err
}

// receive writes an archive as it is stored. It fails if the hub did not send all of it.
func receive(answer *http.Response, to io.Writer, recipients []age.Recipient) error {
	stored := &remembering{to: to}
	if err := seal(answer, stored, recipients); stored.failed == nil {
		return err
	}
	return stored.failed
}

func seal(answer *http.Response, to io.Writer, recipients []age.Recipient) error {
	seal, err := backup.Seal(to, recipients)
	if err != nil {
		return err
	}
	if _, err := io.Copy(seal, answer.Body); err != nil {
		return fmt.Errorf("receive the backup: %w", err)
	}
	if failure := answer.Trailer.Get(failureTrailer); failure != "" {
		if answer.Trailer.Get(passesTrailer) != "" {
			return fmt.Errorf("the running hub says: %s (%w)", failure, errPasses)
		}
		return fmt.Errorf("the running hub says: %s", failure)
	}
	if answer.Trailer.Get(timeTrailer) == "" {
		return errors.New("the running hub did not say that the backup is whole")
	}
	return seal.Close()
}

// acknowledge tells the hub that a backup is stored, for its metrics.
func acknowledge(ctx context.Context, c Config, at string) error {
	answer, err := askLocal(ctx, localSocket(c), http.MethodPost, storedPath+"?time="+at, patience)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("it answered %s", answer.Status)
	}
	return nil
}
