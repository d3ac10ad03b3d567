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

	auditlog "github.com/faroshq/kedge-hub/pkg/audit"
)

// still is the time without a write after which a hub counts as idle.
const still = 300 * time.Millisecond

// FailPoints is a kedge-hub with the build tag failpoints.
const FailPoints = "kedge-hub-failpoints"

// CrashHub is a kedge-hub process with a kcp in another process. A test can have it
// killed at a chosen write, and start it again.
type CrashHub struct {
	*Client
	process *Process
	kcp     *KCP
	dir     string
	args    []string
	point   string
	run     int
}

// StartCrashHub starts the built kedge-hub with fail points in front of k, with a token file of
// its own for people. kcp itself does not have these tokens.
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
		"--data-dir", dir, "--spare-organizations", "0", "--spare-workspaces", "0", "--token-file", tokens, "--kcp-kubeconfig", k.Kubeconfig, "--policy-enforcement-window", "0s", "--root-workspace", root,
		// Without leader election, a restarted hub does not wait for the Lease of the
		// killed one.
		"--leader-elect=false", "--audit-log-file", filepath.Join(dir, auditFile), "--metrics-listen-address", "", "--create-timeout", "1m",
	}, flags...)}
	h.Disarm(t)
	h.Restart(t)
	t.Cleanup(func() { h.process.Kill() })
	return h
}

// auditFile is the name of the audit log in the folder of a CrashHub.
const auditFile = "audit.log"

// Intended reports whether the audit log has an intent that is meant.
func (h *CrashHub) Intended(t testing.TB, meant func(e auditlog.Event) bool) bool {
	t.Helper()
	for _, e := range AuditEvents(t, filepath.Join(h.dir, auditFile)) {
		if e.Stage == auditlog.StageIntent && meant(e) {
			return true
		}
	}
	return false
}

// Restart kills the hub if it still runs, starts it and waits until it is ready.
func (h *CrashHub) Restart(t testing.TB) {
	t.Helper()
	if h.process != nil {
		h.process.Kill()
	}
	require.NoError(t, Wait(Long, h.start))
}

// start takes a new port each time, because another process can take the old port while
// the hub is down.
func (h *CrashHub) start() error {
	program, err := Bin(FailPoints)
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

// Runs returns whether the process runs.
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

// Log is the output of the latest hub process.
func (h *CrashHub) Log() string { return h.process.Output.String() }

// Arm has the hub killed at the n-th write from now on. The argument when says whether
// that is before the write is sent or after it was answered. With n = 0, writes are only
// counted.
func (h *CrashHub) Arm(t testing.TB, n int, when string) {
	t.Helper()
	h.run++
	require.NoError(t, os.Truncate(h.point+".log", 0))
	h.write(t, fmt.Sprintf("r%d %d %s\n", h.run, n, when))
}

// Disarm ends the effect of Arm.
func (h *CrashHub) Disarm(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(h.point + ".log"); err != nil {
		require.NoError(t, os.WriteFile(h.point+".log", nil, 0o600))
	}
	h.run++
	h.write(t, fmt.Sprintf("r%d 0 never\n", h.run))
}

// write replaces the file atomically, because the hub would read a partial line as
// another run.
func (h *CrashHub) write(t testing.TB, line string) {
	t.Helper()
	require.NoError(t, os.WriteFile(h.point+".new", []byte(line), 0o600))
	require.NoError(t, os.Rename(h.point+".new", h.point))
}

// Writes lists the hub's writes since the last Arm, by method and resource.
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

// Settle waits until the hub is idle and done returns nil, or until the hub is killed. It
// returns which of the two happened.
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
