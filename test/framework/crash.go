package framework

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// still is how long nothing may be written until a hub counts as done with what it
// had to do.
const still = 300 * time.Millisecond

// CrashHub is a kedge-hub process in front of a kcp of its own life, which can be
// killed at a write of its choice and started again.
type CrashHub struct {
	*Client
	process *Process
	kcp     *KCP
	dir     string
	args    []string
	point   string
	run     int
}

// StartCrashHub starts the built kedge-hub, in front of k, for people of those
// names; kcp itself knows none of them.
func StartCrashHub(t testing.TB, k *KCP, root string, people []string, flags ...string) *CrashHub {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.csv")
	var b strings.Builder
	for _, name := range people {
		fmt.Fprintf(&b, "%s,%s,uid-%s,\"dev\"\n", Token(name), name, name)
	}
	require.NoError(t, os.WriteFile(tokens, []byte(b.String()), 0o600))
	h := &CrashHub{kcp: k, dir: dir, point: filepath.Join(dir, "point"), args: append([]string{
		"--data-dir", dir, "--token-file", tokens, "--kcp-kubeconfig", k.Kubeconfig, "--root-workspace", root,
		// Alone for sure, it need not wait for the Lease of the one that was killed.
		"--leader-elect=false", "--metrics-listen-address", "", "--create-timeout", "1m",
	}, flags...)}
	h.Disarm(t)
	h.Restart(t)
	t.Cleanup(func() { h.process.Kill() })
	return h
}

// Restart starts the hub, after killing the one before where it still runs, and
// waits until it is ready.
func (h *CrashHub) Restart(t testing.TB) {
	t.Helper()
	if h.process != nil {
		h.process.Kill()
	}
	require.NoError(t, Wait(Long, h.start))
}

// start takes a port of its own each time: while the hub is gone anybody may get
// the one that it had.
func (h *CrashHub) start() error {
	program, err := Bin("kedge-hub")
	if err != nil {
		return err
	}
	env, err := exec.LookPath("env")
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if h.process, err = StartProcess(env, append([]string{"KEDGE_FAIL_POINT_FILE=" + h.point, program, "--listen-address", address}, h.args...)...); err != nil {
		return err
	}
	if h.Client != nil {
		h.HTTP.CloseIdleConnections()
		h.Client = nil
	}
	err = Wait(Long, func() (err error) {
		if !h.Runs() {
			return nil
		}
		if h.Client == nil {
			if h.Client, err = NewClient("https://"+address, filepath.Join(h.dir, "tls", "ca.crt")); err != nil {
				return err
			}
		}
		a, err := h.Try(Call{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("not ready: %s", a.Raw)
		}
		return err
	})
	switch {
	case err != nil:
		h.process.Kill()
		return fmt.Errorf("the hub did not start: %w\n%s", err, h.Log())
	case !h.Runs():
		return fmt.Errorf("the hub ended while it started:\n%s", h.Log())
	}
	return nil
}

// Runs tells whether the process is there.
func (h *CrashHub) Runs() bool {
	select {
	case <-h.process.Ended():
		return false
	default:
		return true
	}
}

// Kill kills the hub.
func (h *CrashHub) Kill() { h.process.Kill() }

// Log is what the running hub, or the last one, printed.
func (h *CrashHub) Log() string { return h.process.Output.String() }

// Arm has the hub killed at the n-th write from now on, before it is sent or after
// it was answered; with 0 the writes are counted only.
func (h *CrashHub) Arm(t testing.TB, n int, when string) {
	t.Helper()
	h.run++
	require.NoError(t, os.Truncate(h.point+".log", 0))
	h.write(t, fmt.Sprintf("r%d %d %s\n", h.run, n, when))
}

// Disarm lets the hub live.
func (h *CrashHub) Disarm(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(h.point + ".log"); err != nil {
		require.NoError(t, os.WriteFile(h.point+".log", nil, 0o600))
	}
	h.run++
	h.write(t, fmt.Sprintf("r%d 0 never\n", h.run))
}

// write replaces the file at once: half of a line would be another run.
func (h *CrashHub) write(t testing.TB, line string) {
	t.Helper()
	require.NoError(t, os.WriteFile(h.point+".new", []byte(line), 0o600))
	require.NoError(t, os.Rename(h.point+".new", h.point))
}

// Writes are the hub's since it was armed last: method and resource.
func (h *CrashHub) Writes() []string {
	raw, _ := os.ReadFile(h.point + ".log")
	var writes []string
	for line := range bytes.Lines(raw) {
		run, rest, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if run == fmt.Sprintf("r%d", h.run) {
			_, what, _ := strings.Cut(rest, " ")
			writes = append(writes, what)
		}
	}
	return writes
}

// Settle waits until the hub has written nothing for a moment and done holds, or
// until it has been killed, and tells which.
func (h *CrashHub) Settle(t testing.TB, done func(ctx context.Context) error) (killed bool) {
	t.Helper()
	seen, since := -1, time.Now()
	require.NoError(t, Wait(Long, func() error {
		if !h.Runs() {
			return nil
		}
		if n := h.logged(); n != seen {
			seen, since = n, time.Now()
		}
		if quiet := time.Since(since); quiet < still {
			return fmt.Errorf("it wrote something %s ago", quiet)
		}
		return done(t.Context())
	}), "%s", h.Log())
	return !h.Runs()
}

func (h *CrashHub) logged() int {
	info, err := os.Stat(h.point + ".log")
	if err != nil {
		return 0
	}
	return int(info.Size())
}
