// Package audit writes down who changed what: one JSON object a line, with no token
// and nothing of what a body held.
package audit

import (
	"context"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Event is something that somebody, or the hub by itself, did.
type Event struct {
	// Actor is the metadata.name of a User, or "kedge-hub".
	Actor string
	// Action is a method and a route pattern, or a word such as "purge".
	Action string
	// Org and Workspace are UUIDs; Object is what else the action was about, by name.
	Org, Workspace, Object string
	// Code is the HTTP status of the answer; 0 where there was none.
	Code int
	// Request is the id of the request.
	Request string
	// Counts say how much of each kind went, for a purge.
	Counts map[string]int
}

// Log writes events.
type Log struct{ logger *zap.Logger }

// New returns a log that writes to w; where w is nil, events go to the logger of the
// process.
func New(ctx context.Context, w io.Writer) *Log {
	if w == nil {
		return &Log{logger: log.From(ctx).Named("audit")}
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.TimeKey, encoder.MessageKey, encoder.LevelKey = "time", "action", ""
	encoder.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(t.UTC().Format(time.RFC3339Nano)) }
	return &Log{logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.AddSync(&serial{w: w}), zap.InfoLevel))}
}

// serial lets one line be written at a time.
type serial struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *serial) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// Write writes an event down.
func (l *Log) Write(e Event) {
	fields := []zap.Field{zap.String("actor", e.Actor)}
	for _, f := range []struct{ key, value string }{
		{"org", e.Org}, {"workspace", e.Workspace}, {"object", e.Object}, {"request", e.Request},
	} {
		if f.value != "" {
			fields = append(fields, zap.String(f.key, f.value))
		}
	}
	if e.Code != 0 {
		fields = append(fields, zap.Int("code", e.Code))
	}
	if e.Counts != nil {
		fields = append(fields, zap.Any("counts", e.Counts))
	}
	l.logger.Info(e.Action, fields...)
}
