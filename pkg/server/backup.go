package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/version"
)

const (
	backupPath = "/backup"
	// storedPath is asked when the client of backupPath has stored what it got.
	storedPath = "/backup/stored"
	// failureTrailer says why an archive is not whole, and timeTrailer and revisionTrailer what is in one that is.
	failureTrailer, timeTrailer, revisionTrailer = "Backup-Failure", "Backup-Time", "Backup-Revision"
	// passesTrailer is there if the failure passes, and warningTrailer says what a whole archive does not have.
	passesTrailer, warningTrailer = "Backup-Failure-Passes", "Backup-Warning"

	// maxFailure is the maximum length of a text in a trailer.
	maxFailure = 1 << 10

	// stalled is how long a backup waits for its reader. Meanwhile etcd uses no page again that the snapshot has.
	stalled = 30 * time.Second
	// maxAttempts is how often a backup is begun that a defragmentation of etcd ends.
	maxAttempts = 3
	// countedDisk is the part of a large disk of which a twentieth stays free.
	countedDisk = 10 << 30
)

// backups makes backups of a hub with an embedded kcp, one at a time.
type backups struct {
	source backup.Source
	// file remembers the last one over restarts.
	file string

	running sync.Mutex
	mu      sync.Mutex
	// sent was written to its reader, and stored is the last one of which the reader says that it is stored.
	sent, stored madeBackup
}

// madeBackup is a backup that was made.
type madeBackup struct {
	Time  time.Time `json:"time"`
	Bytes int64     `json:"bytes"`
}

// newBackups returns the backups of a hub with an embedded kcp.
func (a *assembly) newBackups() (*backups, error) {
	h := a.hub
	b := &backups{file: filepath.Join(h.config.DataDir, "backup.json"), source: backup.Source{
		Dir: h.config.DataDir, Hub: version.String(), KCP: version.KCP(), Now: time.Now, Heads: h.heads, Etcd: h.embedded.Snapshot,
	}}
	if heads := h.audit.Heads(); len(heads) > 0 {
		b.source.Replica = heads[0].Replica
	}
	if h.records != nil && h.config.Records.Records().URL == records.DefaultURL(h.config.DataDir) {
		b.source.Records = func(ctx context.Context, write func(int64, io.Reader) error) error {
			return h.records.Copy(ctx, roomIn(h.config.DataDir), write)
		}
	}
	raw, err := os.ReadFile(b.file)
	if err == nil {
		err = json.Unmarshal(raw, &b.stored)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the time of the last backup: %w; remove %s", err, b.file)
	}
	return b, h.registry.Register(b)
}

// heads returns the ends of the chains of this hub, and of those that the records database has from others. With an
// embedded kcp one hub writes: the others are hubs that were lost, and what they ended this one has, or has replayed. A
// database that cannot be reached keeps nobody from a backup.
func (h *hub) heads(ctx context.Context) (own, ended []audit.Head, err error) {
	own = h.audit.Heads()
	if h.records == nil {
		return own, nil, nil
	}
	stored, err := h.records.Heads(ctx)
	if err != nil {
		log.From(ctx).Warn("the backup has not the ends of audit chains that the records database has", zap.Error(err))
	}
	for _, s := range stored {
		if !slices.ContainsFunc(own, func(h audit.Head) bool { return h.Replica == s.Replica }) {
			ended = append(ended, s)
		}
	}
	return own, ended, nil
}

// roomIn returns an error for a file that would fill the disk of a folder to the second floor of the store.
func roomIn(dir string) func(size int64) error {
	return func(size int64) error {
		free, total, err := disk.Usage(dir)
		if err == nil && free-size < min(total, countedDisk)/20 {
			err = fmt.Errorf("the disk has no room for the copy that is sent: %d bytes, and %d are free", size, free)
		}
		return err
	}
}

// serve writes an archive to the operator. Its length is not known before, so the trailers say whether it is whole.
func (b *backups) serve(w http.ResponseWriter, r *http.Request) {
	if !b.running.TryLock() {
		http.Error(w, "another backup is under way; repeat this when it has ended", http.StatusConflict)
		return
	}
	defer b.running.Unlock()
	began := time.Now()
	out := &paced{to: w, control: http.NewResponseController(w)}
	if err := out.control.Flush(); err != nil {
		return
	}
	m, err := backup.Write(r.Context(), out, b.source)
	if err != nil {
		log.From(r.Context()).Warn("a backup failed", zap.Error(err))
		w.Header().Set(http.TrailerPrefix+failureTrailer, trailing(err.Error()))
		if errs.Is(err, errs.Unavailable) {
			w.Header().Set(http.TrailerPrefix+passesTrailer, "true")
		}
		return
	}
	if m.RecordsLeftOut != "" {
		log.From(r.Context()).Warn("a backup does not have the records database", zap.String("reason", m.RecordsLeftOut))
		w.Header().Set(http.TrailerPrefix+warningTrailer, trailing("the records database is left out: "+m.RecordsLeftOut))
	}
	b.mu.Lock()
	b.sent = madeBackup{Time: m.Time, Bytes: out.bytes}
	b.mu.Unlock()
	w.Header().Set(http.TrailerPrefix+timeTrailer, m.Time.Format(time.RFC3339Nano))
	w.Header().Set(http.TrailerPrefix+revisionTrailer, strconv.FormatInt(m.Etcd.Revision, 10))
	log.From(r.Context()).Info("a backup was sent", zap.Int64("bytes", out.bytes), zap.Duration("after", time.Since(began)))
}

// trailing is a text in one line, cut: a client takes no long trailers.
func trailing(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), maxFailure)]
}

// wasStored notes that the operator has stored the last backup.
func (b *backups) wasStored(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent.Time.IsZero() || r.URL.Query().Get("time") != b.sent.Time.Format(time.RFC3339Nano) {
		http.Error(w, "this is not the last backup", http.StatusConflict)
		return
	}
	b.stored = b.sent
	if err := backup.Replace(b.file, func(to io.Writer) error { return json.NewEncoder(to).Encode(b.stored) }); err != nil {
		// A hub that starts again takes an older backup for the last one, and its alert fires early.
		log.From(r.Context()).Warn("the time of the backup is not remembered", zap.Error(err))
	}
	w.WriteHeader(http.StatusNoContent)
}

// Describe implements prometheus.Collector.
func (b *backups) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, to) }

// Collect implements prometheus.Collector. There is nothing until a backup was stored, so that nobody who makes none
// is alerted.
func (b *backups) Collect(to chan<- prometheus.Metric) {
	b.mu.Lock()
	last := b.stored
	b.mu.Unlock()
	if last.Time.IsZero() {
		return
	}
	gauge := func(name, help string, value float64) {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value)
	}
	gauge("kedge_backup_last_timestamp_seconds", "Time of the last backup that was stored, in seconds since 1970.", float64(last.Time.Unix()))
	gauge("kedge_backup_last_bytes", "Size of the last backup that was stored in bytes, before compression.", float64(last.Bytes))
}

// paced counts what is written, and ends at a reader that takes nothing for a while.
type paced struct {
	to      io.Writer
	control *http.ResponseController
	bytes   int64
}

// Write implements io.Writer.
func (p *paced) Write(raw []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(stalled)); err != nil {
		return 0, err
	}
	n, err := p.to.Write(raw)
	p.bytes += int64(n)
	return n, err
}

// BackupOptions are those of Backup.
type BackupOptions struct {
	// To is a file, a folder, or - for the standard output.
	To string
	// Keep is how many backups stay in a folder; 0 means all.
	Keep int
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
	trailer, err := fetch(ctx, c, name, out, notes, recipients)
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
func fetch(ctx context.Context, c Config, name string, out, notes io.Writer, recipients []age.Recipient) (http.Header, error) {
	for attempt := 1; ; attempt++ {
		answer, err := askForBackup(ctx, c)
		if err != nil {
			return nil, err
		}
		if name == "-" {
			err = receive(answer, out, recipients)
		} else {
			err = backup.Replace(name, func(to io.Writer) error { return receive(answer, to, recipients) })
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
