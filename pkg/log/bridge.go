package log

import (
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Bridge routes the logs of klog and logr to l, under the name "lib". Unless l logs at
// debug, only messages that end the process pass: most library messages are about retries,
// and the hub logs those that matter itself.
func Bridge(l *zap.Logger) {
	l = l.Named("lib")
	if !l.Core().Enabled(zapcore.DebugLevel) {
		l = l.WithOptions(zap.IncreaseLevel(zapcore.DPanicLevel))
	}
	klog.SetLoggerWithOptions(zapr.NewLogger(l), klog.ContextualLogger(true))
}
