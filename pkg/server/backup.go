package server

import (
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
	"time"

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
