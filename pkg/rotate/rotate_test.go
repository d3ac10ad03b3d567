package rotate_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/rotate"
)

// scene is a Watcher of the files a and b, which cannot be used if one contains "bad".
type scene struct {
	t        *testing.T
	dir      string
	clock    *clocktesting.FakeClock
	registry *prometheus.Registry

	mu    sync.Mutex
	loads int
	used  string
	out   bytes.Buffer
}

func (s *scene) load() error {
	a, err := os.ReadFile(filepath.Join(s.dir, "a"))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "b"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	if bytes.Contains(append(a, b...), []byte("bad")) {
		return errors.New("no certificate in it")
	}
	s.used = string(a) + string(b)
	return nil
}

// Write implements io.Writer for the log.
func (s *scene) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *scene) write(name, content string) {
	next := filepath.Join(s.dir, ".next")
	require.NoError(s.t, os.WriteFile(next, []byte(content), 0o600))
	require.NoError(s.t, os.Rename(next, filepath.Join(s.dir, name)))
}

// look has the Watcher look. A tick that waits to be taken is one after the last write, too.
func (s *scene) look() { s.clock.Step(rotate.Interval) }

func (s *scene) state() (loads int, used, out string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads, s.used, s.out.String()
}

func (s *scene) uses(want string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.clock.Step(rotate.Interval)
		_, used, _ := s.state()
		return used == want
	}, time.Minute, time.Millisecond)
}

// metrics waits for the values of the metrics.
func (s *scene) metrics(stale, ok, failed int) {
	s.t.Helper()
	value := func(name string, label string) int {
		families, err := s.registry.Gather()
		require.NoError(s.t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && m.GetLabel()[len(m.GetLabel())-1].GetValue() == label {
					return int(m.GetGauge().GetValue() + m.GetCounter().GetValue())
				}
			}
		}
		return 0
	}
	require.Eventually(s.t, func() bool {
		return value("kedge_file_stale", "x-file") == stale && value("kedge_file_reloads_total", "ok") == ok && value("kedge_file_reloads_total", "error") == failed
	}, time.Minute, time.Millisecond)
}

func start(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(time.Now()), registry: prometheus.NewRegistry()}
	s.write("a", "1")
	s.write("b", "1")
	w, err := rotate.New(s.clock, s.registry, rotate.Source{
		Flag: "x-file", Load: s.load,
		Files: func() []string { return []string{filepath.Join(s.dir, "a"), filepath.Join(s.dir, "b")} },
	})
	require.NoError(t, err)
	logger, err := log.New("console", "info", s)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(log.Into(t.Context(), logger))
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	s.uses("11")
	return s
}

func TestWatcher_usesAChangedFile(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.look()
	loads, _, out := s.state()
	require.Equal(t, 1, loads, "unchanged files are not read again")
	require.Empty(t, out)
	s.write("b", "2")
	s.uses("12")
	_, _, out = s.state()
	require.Contains(t, out, "--x-file")
	s.metrics(0, 1, 0)
}

func TestWatcher_keepsTheOldContentOfABrokenFile(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.write("a", "bad")
	s.look()
	s.metrics(1, 0, 1)
	s.look()
	_, used, out := s.state()
	require.Equal(t, "11", used)
	require.Contains(t, out, "no certificate in it")
	require.Equal(t, 1, bytes.Count([]byte(out), []byte("no certificate in it")), "it is logged once")
	// A pair is replaced by two writes.
	s.write("a", "3")
	s.uses("31")
	s.metrics(0, 1, 1)
	require.NoError(t, os.Remove(filepath.Join(s.dir, "a")))
	s.look()
	s.metrics(1, 1, 2)
	_, used, _ = s.state()
	require.Equal(t, "31", used)
}
