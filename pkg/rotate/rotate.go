package rotate

import (
	"context"
	"crypto/sha256"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Interval is the time between two looks at the files.
const Interval = 10 * time.Second

// Source is a set of files that are used together.
type Source struct {
	// Flag is the flag that names the files, for logs and metrics.
	Flag string
	// Files returns the paths of the files. Files that do not exist are compared too.
	Files func() []string
	// Load reads the files and has the hub use them. It leaves everything as it is if it fails.
	Load func() error
}

// Watcher loads sources whose files change.
type Watcher struct {
	clock   clock.WithTicker
	sources []*watched
	reloads *prometheus.CounterVec
	stale   *prometheus.GaugeVec
}

// watched is a source with the content that was seen last.
type watched struct {
	Source
	seen [sha256.Size]byte
	// failed is the error of the last Load, or empty.
	failed string
}

// New returns a Watcher of sources.
func New(k clock.WithTicker, metrics prometheus.Registerer, sources ...Source) (*Watcher, error) {
	w := &Watcher{
		clock: k,
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kedge_file_reloads_total", Help: "Files that changed and were read again, by the flag that names them and by result: ok or error.",
		}, []string{"flag", "result"}),
		stale: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kedge_file_stale", Help: "1 while the hub uses an older content than that of the files of a flag, because the new one cannot be used, else 0.",
		}, []string{"flag"}),
	}
	for _, c := range []prometheus.Collector{w.reloads, w.stale} {
		if err := metrics.Register(c); err != nil {
			return nil, err
		}
	}
	for _, s := range sources {
		w.sources = append(w.sources, &watched{Source: s})
		w.stale.WithLabelValues(s.Flag).Set(0)
	}
	return w, nil
}

// Run watches until ctx ends. It loads every source once at its start, because the files may have
// changed since the hub read them.
func (w *Watcher) Run(ctx context.Context) {
	ticker := w.clock.NewTicker(Interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		for _, s := range w.sources {
			w.look(ctx, s, first)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (w *Watcher) look(ctx context.Context, s *watched, first bool) {
	seen := digest(s.Files())
	changed := seen != s.seen && !first
	if !changed && !first && s.failed == "" {
		return
	}
	s.seen = seen
	logger := log.From(ctx).With(zap.String("flag", "--"+s.Flag))
	if err := s.Load(); err != nil {
		if changed || s.failed != err.Error() {
			w.reloads.WithLabelValues(s.Flag, "error").Inc()
			logger.Error("a file cannot be used; the hub goes on with its older content until it is corrected", zap.Error(err))
		}
		s.failed = err.Error()
		w.stale.WithLabelValues(s.Flag).Set(1)
		return
	}
	if changed || s.failed != "" {
		w.reloads.WithLabelValues(s.Flag, "ok").Inc()
		logger.Info("uses the new content of a file")
	}
	s.failed = ""
	w.stale.WithLabelValues(s.Flag).Set(0)
}

// digest is the hash of the contents of files. A file that cannot be read counts as its error.
func digest(files []string) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte(err.Error())
		}
		one := sha256.Sum256(content)
		h.Write(one[:])
	}
	h.Sum(sum[:0])
	return sum
}
