package audit

import (
	"context"
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Event is one change made by a User or by the hub.
type Event struct {
	// Actor is the metadata.name of a User, or "kedge-hub".
	Actor string
	// Action is an HTTP method with a route pattern, or a word such as "purge".
	Action string
	// Org and Workspace are the UUIDs of the affected Organization and Workspace; Object is
	// the name of any other affected object. Each may be empty.
	Org, Workspace, Object string
	// Code is the HTTP status of the answer; 0 if there was none.
	Code int
	// Request is the request id; empty if there was no request. ClientRequest is the one that
	// the client sent; empty if there was none.
	Request, ClientRequest string
	// Peer is the network address of a client that logs in or out. It is empty otherwise.
	Peer string
	// Counts are the numbers of removed objects by kind, for a purge.
	Counts map[string]int
}

// Log writes events. It is safe for concurrent use.
type Log struct{ logger *zap.Logger }

// New returns a log that writes to w. If w is nil, events go to the logger of the
// context, under the name "audit".
func New(ctx context.Context, w io.Writer) *Log {
	if w == nil {
		return &Log{logger: log.From(ctx).Named("audit")}
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.TimeKey, encoder.MessageKey, encoder.LevelKey = "time", "action", ""
	encoder.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(t.UTC().Format(time.RFC3339Nano)) }
	return &Log{logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), zap.InfoLevel))}
}

// Open returns a log that appends to a file, or the log of New without a writer if file is
// empty. closing closes the file.
func Open(ctx context.Context, file string) (l *Log, closing func(), err error) {
	if file == "" {
		return New(ctx, nil), func() {}, nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return New(ctx, f), func() { _ = f.Close() }, nil
}

// Write appends an event.
func (l *Log) Write(e Event) {
	fields := []zap.Field{zap.String("actor", e.Actor)}
	for _, f := range []struct{ key, value string }{
		{"org", e.Org}, {"workspace", e.Workspace}, {"object", e.Object}, {"request", e.Request},
		{"clientRequest", e.ClientRequest}, {"peer", e.Peer},
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
