package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Stdout is the name of the standard output among files.
const Stdout = "-"

// Options say where events go.
type Options struct {
	// File is the file that events are appended to; Stdout is the standard output. If it is
	// empty, events go to the logger of the context, under the name "audit". What is no regular
	// file is not rotated.
	File string
	// MaxSize is the size in MiB at which the file is rotated. It is at least 1.
	MaxSize int
	// MaxBackups is the number of rotated files that are kept, and MaxAge the number of days that
	// they are kept. Zero means no limit.
	MaxBackups, MaxAge int
}

// Log writes events. It is safe for concurrent use.
type Log struct {
	// logger is nil if there is a writer.
	logger *zap.Logger
	lost   prometheus.Counter
	// file is that of Options if it is a regular file.
	file    string
	rotated *lumberjack.Logger

	// reading has room for one Read.
	reading chan struct{}

	mu sync.Mutex
	to io.Writer
	// torn is true if the last line has no end.
	torn bool
	// err is that of the last event; nil if it was written. It is read while a write blocks.
	err atomic.Pointer[error]
}

// New returns a log that writes to w, or to the logger of the context if w is nil.
func New(ctx context.Context, w io.Writer) *Log {
	l := &Log{to: w, reading: make(chan struct{}, 1), lost: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kedge_audit_lost_total", Help: "Audit events that could not be written.",
	})}
	if w == nil {
		l.logger = log.From(ctx).Named("audit")
	}
	return l
}

// Open returns a log that writes as o says, and registers its metric. closing closes the file.
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
	f, err := os.OpenFile(o.File, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return New(ctx, f), func() { _ = f.Close() }, nil
	}
	// A hub that was killed may have left a part of a line.
	last := []byte{'\n'}
	if info.Size() > 0 {
		_, err = f.ReadAt(last, info.Size()-1)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	files := &lumberjack.Logger{Filename: o.File, MaxSize: o.MaxSize, MaxBackups: o.MaxBackups, MaxAge: o.MaxAge}
	l = New(ctx, files)
	l.file, l.rotated, l.torn = o.File, files, last[0] != '\n'
	return l, func() { _ = files.Close() }, nil
}

// Write appends an event. It returns after write(2), not after fsync(2). An event that cannot be
// written is counted, and Err reports the error until another one is written.
func (l *Log) Write(e Event) error {
	e.bounded()
	e.APIVersion = APIVersion
	l.mu.Lock()
	defer l.mu.Unlock()
	// The order of the lines is that of their times.
	e.Time = time.Now().UTC()
	if l.logger != nil {
		l.logger.Info(e.Action, zap.Any("event", e))
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		l.lost.Inc()
		return fmt.Errorf("encode an audit event: %w", err)
	}
	line = append(line, '\n')
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.to.Write(line)
	if err != nil {
		l.torn = l.torn || n > 0
		l.lost.Inc()
		err = fmt.Errorf("the audit log cannot be written: %w", err)
		l.err.Store(&err)
		return err
	}
	l.torn = false
	l.err.Store(nil)
	return nil
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
