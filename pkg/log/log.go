package log

import (
	"context"
	"fmt"
	"io"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a logger that writes to out. format is "console" or "json"; level
// is "debug", "info", "warn" or "error". Times are RFC 3339 in UTC.
func New(format, level string, out io.Writer) (*zap.Logger, error) {
	var min zapcore.Level
	if err := min.UnmarshalText([]byte(level)); err != nil || min > zapcore.ErrorLevel {
		return nil, fmt.Errorf("log level %q is not one of debug, info, warn, error", level)
	}
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = "time"
	config.EncodeTime = zapcore.RFC3339TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "console":
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return nil, fmt.Errorf("log format %q is not one of console, json", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), min)), nil
}

type key struct{}

// carried is a logger with fields, made when it is first used.
type carried struct {
	base   *zap.Logger
	fields []zap.Field
	once   sync.Once
	made   *zap.Logger
}

func (c *carried) logger() *zap.Logger {
	c.once.Do(func() { c.made = c.base.With(c.fields...) })
	return c.made
}

// Into returns a copy of ctx that carries the logger with the fields. Most requests log nothing, and make no logger.
func Into(ctx context.Context, l *zap.Logger, fields ...zap.Field) context.Context {
	return context.WithValue(ctx, key{}, &carried{base: l, fields: fields})
}

// From returns the logger of the context, or one that writes nothing if there is none.
func From(ctx context.Context) *zap.Logger {
	if c, ok := ctx.Value(key{}).(*carried); ok {
		return c.logger()
	}
	return zap.NewNop()
}
