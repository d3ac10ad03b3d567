package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

func TestMain(m *testing.M) { os.Exit(framework.Documented(m.Run())) }

// hub is a kedge-hub process with its data.
type hub struct {
	*framework.Process
	*framework.Client
	// program is the path of the kedge-hub that runs.
	program string
	dir     string
	port    int
	// metrics is the URL of /metrics.
	metrics string
}

// startHub starts the built kedge-hub with the data directory dir, which can have the data of
// an earlier one, and waits until it is ready.
func startHub(t *testing.T, dir string, port int, flags ...string) *hub {
	t.Helper()
	h := launch(t, dir, port, flags...)
	h.awaitReady(t)
	return h
}

// awaitReady waits until the hub serves, and makes its Client.
func (h *hub) awaitReady(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() (err error) {
		select {
		case <-h.Ended():
			require.Fail(t, "the hub ended", "%s", h.Output)
		default:
		}
		if h.Client, err = framework.NewClient(fmt.Sprintf("https://127.0.0.1:%d", h.port), filepath.Join(h.dir, "tls", "ca.crt")); err != nil {
			return err
		}
		a, err := h.Try(framework.Call{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("not ready: %s", a.Raw)
		}
		return err
	})
}

// launch starts the built kedge-hub, and waits for nothing: the hub has no Client.
func launch(t *testing.T, dir string, port int, flags ...string) *hub {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	return launchProgram(t, program, dir, port, append([]string{"--kcp-port", "0", "--etcd-client-port", "0", "--etcd-peer-port", "0"}, flags...)...)
}

// startProgram is startHub for a kedge-hub at any path, and says nothing about kcp.
func startProgram(t *testing.T, program, dir string, port int, flags ...string) *hub {
	t.Helper()
	h := launchProgram(t, program, dir, port, flags...)
	h.awaitReady(t)
	return h
}

// launchProgram is launch for a kedge-hub at any path, and says nothing about kcp.
func launchProgram(t *testing.T, program, dir string, port int, flags ...string) *hub {
	t.Helper()
	tokens := filepath.Join(dir, "tokens.csv")
	require.NoError(t, framework.WriteTokens(tokens))
	metrics := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	process, err := framework.StartProcess(program, append([]string{
		"--data-dir", dir, "--spare-organizations", "0", "--spare-workspaces", "0", "--token-file", tokens, "--listen-address", fmt.Sprintf("127.0.0.1:%d", port),
		"--metrics-listen-address", metrics, "--create-timeout", "1m",
	}, flags...)...)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return &hub{Process: process, program: program, dir: dir, port: port, metrics: "http://" + metrics + "/metrics"}
}

// comparedHub starts a hub whose URL, at port, is that of a proxy which compares the calls of
// programs with the OpenAPI document.
func comparedHub(t *testing.T, dir string, port int, flags ...string) *hub {
	t.Helper()
	h := startHub(t, dir, freePort(t), append(flags, "--external-url", fmt.Sprintf("https://127.0.0.1:%d", port))...)
	compared, err := framework.NewClient(h.Compared(t, dir, port), h.CA)
	require.NoError(t, err)
	h.Client = compared
	return h
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := framework.FreePort()
	require.NoError(t, err)
	return port
}

// Two hubs with the same data would destroy it, whatever their ports.
func TestHub_refusesDataInUse(t *testing.T) {
	t.Parallel()
	h := startHub(t, t.TempDir(), freePort(t))
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	second, err := framework.StartProcess(program,
		"--data-dir", h.dir, "--spare-organizations", "0", "--spare-workspaces", "0", "--listen-address", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "--metrics-listen-address", "",
		"--kcp-port", strconv.Itoa(freePort(t)), "--etcd-client-port", strconv.Itoa(freePort(t)), "--etcd-peer-port", strconv.Itoa(freePort(t)))
	require.NoError(t, err)
	t.Cleanup(second.Kill)
	select {
	case <-second.Ended():
		require.Contains(t, second.Output.String(), "--data-dir: another hub works with")
	case <-time.After(framework.Long):
		require.Fail(t, "the second hub runs", "%s", second.Output)
	}
	h.CreateOrg(t, "alice", "ACME")
	// The lock of a killed hub is released.
	h.Kill()
	startHub(t, h.dir, h.port)
}

func TestSIGTERM_drainsAndSucceeds(t *testing.T) {
	t.Parallel()
	h := startHub(t, t.TempDir(), freePort(t))
	org := h.CreateOrg(t, "alice", "ACME")
	cluster := h.CreateWorkspace(t, "alice", org, "own").Text("clusterID")
	request, err := http.NewRequest(http.MethodGet, h.URL+"/clusters/"+cluster+"/api/v1/namespaces?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("alice"))
	watch, err := h.HTTP.Do(request)
	require.NoError(t, err)
	defer func() { _ = watch.Body.Close() }()
	framework.Eventually(t, framework.Long, func() error {
		if code, out := verifies(t, h.dir); code != 0 {
			return fmt.Errorf("kedge-hub verify ends with %d: %s", code, out)
		}
		return nil
	})
	auditVerifies(t, h)
	began := time.Now()
	require.NoError(t, h.Stop(), "%s", h.Output)
	// An open watch must not delay the end until the drain timeout.
	require.Less(t, time.Since(began), 20*time.Second)
	require.NotContains(t, h.Output.String(), framework.Token("alice"))
	code, out := verifies(t, h.dir)
	require.Equal(t, 2, code, "%s", out)
	require.Contains(t, out, "start the hub")
}

// auditVerifies walks the chains of a running hub with kedge-hub audit verify, and finds an event that is cut out of a copy.
func auditVerifies(t *testing.T, h *hub) {
	t.Helper()
	code, out := ends(t, h.program, "audit", "verify", "--data-dir", h.dir)
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "beside the ends that kcp has: the chains are whole")
	raw, err := os.ReadFile(filepath.Join(h.dir, "audit", "rights.jsonl"))
	require.NoError(t, err)
	events := strings.SplitAfter(string(raw), "\n")
	require.Greater(t, len(events), 3)
	cut := filepath.Join(t.TempDir(), "rights.jsonl")
	require.NoError(t, os.WriteFile(cut, []byte(strings.Join(slices.Delete(events, 1, 2), "")), 0o600))
	code, out = ends(t, h.program, "audit", "verify", cut)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "event 2: is missing")
}

// verifies compares what a hub derives with kedge-hub verify.
func verifies(t *testing.T, dir string) (code int, out string) {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	return verifiesWith(t, program, "--data-dir", dir)
}

// verifiesWith is verifies for a kedge-hub at any path.
func verifiesWith(t *testing.T, program string, flags ...string) (code int, out string) {
	t.Helper()
	return ends(t, program, append([]string{"verify"}, flags...)...)
}

// ends runs a program until it ends.
func ends(t *testing.T, program string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	raw, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

func TestBadFlags_nameTheFlagAndTheFix(t *testing.T) {
	t.Parallel()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	for _, c := range []struct{ flag, value, fix string }{
		{"--listen-address", "nowhere", "127.0.0.1:9443"},
		{"--external-url", "http://plain.example", "https"},
		{"--token-file", filepath.Join(t.TempDir(), "missing"), "name a file"},
		{"--root-workspace", "kedge", "root:kedge"},
		{"--create-timeout", "-1s", "10s"},
		{"--log-level", "loud", "debug, info, warn, error"},
		{"--no-such-flag", "1", "--help"},
	} {
		p, err := framework.StartProcess(program, c.flag, c.value)
		require.NoError(t, err)
		select {
		case <-p.Ended():
		case <-time.After(framework.Long):
			p.Kill()
			require.Fail(t, "it started", "%s %s", c.flag, c.value)
		}
		require.Contains(t, p.Output.String(), strings.TrimPrefix(c.flag, "--"))
		require.Contains(t, p.Output.String(), c.fix)
		_ = os.Remove(filepath.Join(".", ".kedge"))
	}
}
