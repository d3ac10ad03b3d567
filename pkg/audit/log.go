package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Stdout is the name of the standard output among files.
const Stdout = "-"

// rightsFile is the default name of the file of rights. Beside it, that of writes has a name without it.
const rightsFile = Rights + ".jsonl"

// DefaultFile is the file of rights in a directory of data.
func DefaultFile(dir string) string { return filepath.Join(dir, "audit", rightsFile) }

// Options say where events go.
type Options struct {
	// File is the file that the events of Rights are appended to; WritesFile has the others. Stdout is the
	// standard output, for both. If it is empty, events go to the logger of the context, under the name
	// "audit". What is no regular file is not rotated.
	File string
	// MaxSize is the size in MiB at which a file is put away. It is at least 1.
	MaxSize int
	// MaxBackups is the number of files of each chain that are kept when they were put away, and MaxAge the
	// number of days that they are kept. Zero means no limit.
	MaxBackups, MaxAge int
}

// WritesFile is the file of the events of Writes.
func (o Options) WritesFile() string {
	if filepath.Base(o.File) == rightsFile {
		return filepath.Join(filepath.Dir(o.File), Writes+".jsonl")
	}
	ext := filepath.Ext(o.File)
	return strings.TrimSuffix(o.File, ext) + "-" + Writes + ext
}

// Log writes events. It is safe for concurrent use.
type Log struct {
	// logger is nil if there is a writer.
	logger *zap.Logger
	lost   prometheus.Counter

	// changed has room for one notice of a new event.
	changed chan struct{}

	// turn guards the chains, which are nil with a logger.
	turn           *turn
	rights, writes *chain
	// err is that of the last event; nil if it was written. heads are the ends of the chains. They are read while a write
	// blocks.
	err   atomic.Pointer[error]
	heads atomic.Pointer[[]Head]
}

// New returns a log that writes to w, or to the logger of the context if w is nil.
func New(ctx context.Context, w io.Writer) *Log {
	l := &Log{changed: make(chan struct{}, 1), turn: newTurn(), lost: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kedge_audit_lost_total", Help: "Audit events that could not be written.",
	})}
	if w == nil {
		l.logger = log.From(ctx).Named("audit")
		return l
	}
	replica := rand.Text()
	l.rights = &chain{head: Head{Replica: replica, Log: Rights}, to: w}
	l.writes = &chain{head: Head{Replica: replica, Log: Writes}, to: w}
	l.publish()
	return l
}

// Open returns a log that writes as o says, and registers its metric. closing closes the files.
func Open(ctx context.Context, o Options, registry prometheus.Registerer) (l *Log, closing func(), err error) {
	closing = func() {}
	switch o.File {
	case "":
		l = New(ctx, nil)
	case Stdout:
		l = New(ctx, os.Stdout)
	default:
		if l, closing, err = open(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	if err := registry.Register(l.lost); err != nil {
		closing()
		return nil, nil, fmt.Errorf("register the metric of the audit log: %w", err)
	}
	return l, closing, nil
}

func open(ctx context.Context, o Options) (l *Log, closing func(), err error) {
	if o.File == DefaultFile(filepath.Dir(filepath.Dir(o.File))) {
		if err := os.MkdirAll(filepath.Dir(o.File), 0o700); err != nil {
			return nil, nil, err
		}
	}
	if info, err := os.Stat(o.File); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(o.File, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return nil, nil, err
		}
		return New(ctx, f), func() { _ = f.Close() }, nil
	}
	l = New(ctx, io.Discard)
	replica := ""
	var opened []*file
	closing = func() {
		// A write that hangs keeps nobody from the end of the process, which closes the files.
		if !l.turn.try() {
			return
		}
		defer l.turn.release()
		l.settle()
		for _, f := range opened {
			_ = f.to.Close()
		}
	}
	for path, c := range map[string]*chain{o.File: l.rights, o.WritesFile(): l.writes} {
		last, torn, err := lastOf(path, c.head.Log)
		if err != nil {
			closing()
			return nil, nil, err
		}
		if c.file, err = openFile(path, o); err != nil {
			closing()
			return nil, nil, err
		}
		opened = append(opened, c.file)
		c.to, c.torn = c.file, torn
		if last.OK {
			c.head.Seq, c.head.Hash = last.Event.Seq, last.Hash
			if replica != "" && replica != last.Event.Replica {
				closing()
				return nil, nil, errors.New("its files are of two replicas of the hub; put those of one of them elsewhere")
			}
			replica = last.Event.Replica
		}
	}
	if replica != "" {
		l.rights.head.Replica, l.writes.head.Replica = replica, replica
	}
	l.publish()
	if err := l.rights.openMark(); err != nil {
		closing()
		return nil, nil, err
	}
	if l.rights.lost > 0 {
		log.From(ctx).Warn("events of the audit log were lost before this start; the next one says so", zap.String("file", o.File))
	}
	return l, closing, nil
}

// Write appends an event. It returns after write(2), not after fsync(2). An event that cannot be
// written is counted, and Err reports the error until another one is written. One whose disk does not answer
// is given up, and may be written nevertheless when it does.
func (l *Log) Write(e Event) error {
	// A copy, because the caller goes on before an event that was given up is written.
	e = e.bounded()
	if l.logger != nil {
		e.APIVersion, e.Time = APIVersion, time.Now().UTC()
		l.logger.Info(e.Action, zap.Any("event", e))
		return nil
	}
	c := l.rights
	if chainOf(e) == Writes {
		c = l.writes
	}
	if !l.turn.take() {
		c.missed.Add(1)
		return l.failed(errHangs)
	}
	written := make(chan error, 1)
	go func() {
		err := l.write(c, e)
		l.settle()
		l.turn.release()
		// Somebody may have given up in between.
		for l.missed() && l.turn.try() {
			l.settle()
			l.turn.release()
		}
		written <- err
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-written:
		return err
	case <-timer.C:
	}
	select {
	case err := <-written:
		return err
	default:
		return l.failed(errHangs)
	}
}

func (l *Log) missed() bool { return l.rights.missed.Load() > 0 || l.writes.missed.Load() > 0 }

// settle counts the events that were given up while a write hung, for the one whose turn it is. A hub that is killed before
// the next event then remembers that they are lost.
func (l *Log) settle() {
	for _, c := range []*chain{l.rights, l.writes} {
		if c.missed.Load() == 0 {
			continue
		}
		c.count()
		if err := c.remember(); err != nil {
			err = fmt.Errorf("a restart would forget that events are lost: %w", err)
			l.err.Store(&err)
		}
	}
}

// write appends an event to a chain, for the one whose turn it is.
func (l *Log) write(c *chain, e Event) error {
	c.count()
	l.rotate(c)
	// The order of the lines is that of their times.
	e.Time = time.Now().UTC()
	err := c.write(e)
	l.publish()
	// An outcome behind the end of the hub is missing as one of a killed hub is: its intent is there.
	if e.Stage != StageOutcome || !errors.Is(err, os.ErrClosed) {
		if marked := c.remember(); marked != nil {
			err = fmt.Errorf("%w; a restart would forget that: %w", err, marked)
		}
	}
	if err != nil {
		return l.failed(err)
	}
	l.err.Store(nil)
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return nil
}

// failed counts an event that is not written, and returns the error that readiness reports.
func (l *Log) failed(err error) error {
	l.lost.Inc()
	err = fmt.Errorf("the audit log cannot be written: %w", err)
	l.err.Store(&err)
	return err
}

// Changed receives after new events, for one receiver.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// rotate puts the file of a chain away if it is full, and says so in the chain.
func (l *Log) rotate(c *chain) {
	now := time.Now().UTC()
	if c.rotation == nil && c.file != nil && c.file.full() {
		// A file that cannot be put away goes on.
		c.rotation, _ = c.file.rotate(now)
		c.torn = c.torn && c.rotation == nil
	}
	if c.rotation == nil {
		return
	}
	e := Event{Time: now, ID: rand.Text(), Stage: StageOutcome, Actor: Actor{Kind: ActorHub}, Action: "rotate", Rotation: c.rotation}.bounded()
	lost := c.lost
	if c.write(e) == nil {
		c.rotation = nil
	} else {
		// It is written again.
		c.lost = lost
	}
}

func (l *Log) publish() { l.heads.Store(&[]Head{l.rights.head, l.writes.head}) }

// Heads returns the last event of each chain. There is none with a logger. It does not wait for a write.
func (l *Log) Heads() []Head {
	if heads := l.heads.Load(); heads != nil {
		return slices.Clone(*heads)
	}
	return nil
}

// Paths returns the files of the chains. They are empty if the log is in no regular files of this process.
func (l *Log) Paths() (paths []string) {
	for _, c := range []*chain{l.rights, l.writes} {
		if c != nil && c.file != nil {
			paths = append(paths, c.file.path)
		}
	}
	return paths
}

// Around writes the intent of a change of the hub itself, makes the change, and writes the outcome:
// 200, or 500 for a change that failed and is tried again. A change that does not only reduce rights
// is not made if the intent cannot be written.
func (l *Log) Around(e Event, reduces bool, write func() error) error {
	e.Stage = StageIntent
	if err := l.Write(e); err != nil && !reduces {
		return err
	}
	err := write()
	e.Stage, e.Code = StageOutcome, http.StatusOK
	if err != nil {
		e.Code = http.StatusInternalServerError
	}
	_ = l.Write(e)
	return err
}

// Err returns the error of the last event if it could not be written.
func (l *Log) Err() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}
