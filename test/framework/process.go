package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Long is the time limit for any single wait, chosen for slow machines.
const Long = 2 * time.Minute

// Bin returns the path of a built program in $KEDGE_TEST_BIN, which the Makefile sets.
func Bin(name string) (string, error) {
	dir := os.Getenv("KEDGE_TEST_BIN")
	if dir == "" {
		return "", fmt.Errorf("KEDGE_TEST_BIN is not set: run the tests with make test")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: run the tests with make test", name)
	}
	return path, nil
}

// NeedProgram returns the path of a program of the system, by the first of its names that is
// there. Without it the test is skipped, or fails if KEDGE_TEST_INSIST is set, as in CI.
func NeedProgram(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.Empty(t, os.Getenv("KEDGE_TEST_INSIST"), "%s is not installed", names[0])
	t.Skipf("%s is not installed", names[0])
	return ""
}

// The ports are below the ephemeral range of the system, because an outgoing connection
// can take an ephemeral port before the server listens on it.
const firstPort, lastPort = 10000, 32000

var givenPorts sync.Map

// FreePort returns a free port on loopback, and never the same port twice.
func FreePort() (int, error) {
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, given := givenPorts.LoadOrStore(port, true); !given {
			return port, nil
		}
	}
	return 0, errors.New("no port is free")
}

// Output collects the output of a program and lets tests wait for it.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// warnings returns the last lines of a log that are warnings or errors.
func (o *Output) warnings() string {
	const most = 40
	var all []string
	for line := range strings.Lines(o.String()) {
		if strings.Contains(line, "\tWARN\t") || strings.Contains(line, "\tERROR\t") {
			all = append(all, line)
		}
	}
	return strings.Join(all[max(len(all)-most, 0):], "")
}

// Process is a program that runs beside the tests.
type Process struct {
	Output *Output
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
}

// StartProcess starts a program.
func StartProcess(path string, args ...string) (*Process, error) {
	p := &Process{Output: &Output{}, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.Output, p.Output
	// The program must not outlive the tests, however they end.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill kills the program as kill -9 does, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Stop asks the program to end and returns how it ended.
func (p *Process) Stop() error {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.err
	case <-time.After(Long):
		p.Kill()
		return fmt.Errorf("the program did not end on SIGTERM")
	}
}

// PID is the program's process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }
