package log

import (
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Bridge sends the logs of klog and of logr, which kcp and client-go write to,
// through l. They are quiet unless l is at debug: below that, the libraries' own
// infos, warnings and errors are about retries that the hub reports itself when
// they matter, so only what ends the process gets through.
func Bridge(l *zap.Logger) {
	l = l.Named("lib")
	if !l.Core().Enabled(zapcore.DebugLevel) {
		l = l.WithOptions(zap.IncreaseLevel(zapcore.DPanicLevel))
	}
	klog.SetLoggerWithOptions(zapr.NewLogger(l), klog.ContextualLogger(true))
}
