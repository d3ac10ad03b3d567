package faults

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// process is a kedge-hub process, which can be killed and paused.
type process struct {
	*framework.Process
	*framework.Client
	metrics string
	// way is the connection of the hub to kcp, on which its writes are counted.
	way *framework.Faults

	mu     sync.Mutex
	writes []string
}

// startProcess starts a hub without waiting for it.
func startProcess(t *testing.T, way *framework.Faults, root string, flags ...string) *process {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	port, err := framework.FreePort()
	require.NoError(t, err)
	metrics, err := framework.FreePort()
	require.NoError(t, err)
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", port)
	p := &process{way: way, metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)}
	p.Process, err = framework.StartProcess(program, append([]string{
		"--data-dir", dir, "--spare-organizations", "0", "--spare-workspaces", "0", "--kcp-kubeconfig", way.Kubeconfig, "--token-file", way.TokenFile, "--root-workspace", root,
		"--listen-address", address, "--metrics-listen-address", strings.TrimSuffix(strings.TrimPrefix(p.metrics, "http://"), "/metrics"),
		"--create-timeout", "1m", "--personal-orgs=false", "--default-org-quota", "1000",
	}, flags...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.Signal(syscall.SIGCONT)
		p.Kill()
	})
	framework.Eventually(t, framework.Long, func() error {
		p.Client, err = framework.NewClient("https://"+address, filepath.Join(dir, "tls", "ca.crt"))
		return err
	})
	return p
}

func (p *process) ready(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a, err := p.Try(framework.Call{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("not ready: %s\n%s", a.Raw, p.Output)
		}
		return err
	})
}

// leads reads the metric kedge_leader.
func (p *process) leads() (bool, error) {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Get(p.metrics)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return strings.Contains(string(raw), "\nkedge_leader 1\n"), err
}

func (p *process) follows(t *testing.T, leads bool) time.Duration {
	t.Helper()
	began := time.Now()
	framework.Eventually(t, framework.Long, func() error {
		got, err := p.leads()
		if err == nil && got != leads {
			err = fmt.Errorf("it is %v that it leads", got)
		}
		return err
	})
	return time.Since(began)
}

// count starts counting the hub's writes to kcp, without those of the election, and without the ends of its audit log, which
// every replica notes on the root workspace every few minutes. A TokenReview writes nothing: a hub asks kcp at its start, on
// every replica, how it verifies tokens.
func (p *process) count() {
	p.mu.Lock()
	p.writes = nil
	p.mu.Unlock()
	p.way.Intercept(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		heads := r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/")
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.HasSuffix(r.URL.Path, "/tokenreviews") && !heads {
			p.mu.Lock()
			p.writes = append(p.writes, r.Method+" "+r.URL.Path)
			p.mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	})
}

func (p *process) wrote() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// twoHubs starts two hubs and returns the leader first.
func twoHubs(t *testing.T, root string, flags ...string) (leader, other *process) {
	t.Helper()
	leader = startProcess(t, framework.NewFaults(t, kcp), root, flags...)
	leader.ready(t)
	leader.follows(t, true)
	other = startProcess(t, framework.NewFaults(t, kcp), root, flags...)
	other.ready(t)
	other.follows(t, false)
	leader.knowsKCP(t)
	other.knowsKCP(t)
	return leader, other
}

// knowsKCP waits until a hub has asked kcp what it asks after its start, with a Secret: a hub that is
// paused meanwhile asks again, which is a write that nobody asked for.
func (p *process) knowsKCP(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		if !strings.Contains(p.Output.String(), "kcp looks up the accounts of tokens") {
			return errors.New("it does not know whether kcp looks up accounts")
		}
		return nil
	})
}

// works requires that a hub carries out requests.
func (p *process) works(t *testing.T, org string) (uuid string) {
	t.Helper()
	uuid = p.CreateOrg(t, "alice", "by one of two")
	p.CreateWorkspace(t, "alice", org, "by one of two")
	// A create that takes longer than --create-timeout is answered 202.
	p.Do(t, framework.InOrg("alice", http.MethodPost, uuid, "/members", framework.Adding("bob", "member")), http.StatusCreated, http.StatusAccepted)
	framework.Eventually(t, framework.Long, func() error {
		a, err := p.Try(framework.InOrg("bob", http.MethodGet, uuid, "", nil))
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
	return uuid
}

// begin sends creates to a hub until there are enough or it stops answering. It returns when the
// first one is acknowledged; wait returns all acknowledged ones.
func begin(t *testing.T, p *process) (wait func() []string) {
	t.Helper()
	var mu sync.Mutex
	var acknowledged []string
	var creating sync.WaitGroup
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for range 4 {
		creating.Go(func() {
			for count() < 16 {
				a, err := p.Try(framework.Call{
					As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": "begun"},
					Header: http.Header{"Prefer": {"respond-async"}},
				})
				if err != nil || a.Code != http.StatusAccepted {
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, a.Text("uuid"))
				mu.Unlock()
			}
		})
	}
	framework.Eventually(t, framework.Long, func() error {
		if count() == 0 {
			return fmt.Errorf("nothing has begun")
		}
		return nil
	})
	return func() []string {
		creating.Wait()
		return acknowledged
	}
}

// finished requires that all begun creates complete, as seen by this hub.
func (p *process) finished(t *testing.T, orgs []string) {
	t.Helper()
	require.NotEmpty(t, orgs)
	framework.Eventually(t, framework.Long, func() error {
		for _, uuid := range orgs {
			a, err := p.Try(framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + uuid, Org: uuid})
			if err != nil || a.Code != http.StatusOK || a.Text("phase") != "Ready" {
				return fmt.Errorf("%s: %d %s %w", uuid, a.Code, a.Raw, err)
			}
		}
		return nil
	})
}

func prepare(t *testing.T, p *process) (org string) {
	t.Helper()
	p.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	return p.CreateOrg(t, "alice", "ACME")
}

func TestKilledLeader_isReplacedAndItsWorkFinished(t *testing.T) {
	t.Parallel()
	leader, other := twoHubs(t, framework.NewRoot())
	org := prepare(t, leader)
	leader.finished(t, []string{other.works(t, org)})
	acknowledged := begin(t, leader)
	leader.Kill()
	took := other.follows(t, true)
	require.Less(t, took, replaced)
	begun := acknowledged()
	other.finished(t, begun)
	other.works(t, org)
	t.Logf("killed: the other leads after %s and finishes %d Orgs", took.Round(time.Millisecond), len(begun))
}

// A paused process does not notice the time that has passed.
func TestPausedLeader_writesNothingAndKeepsServing(t *testing.T) {
	t.Parallel()
	leader, other := twoHubs(t, framework.NewRoot())
	org := prepare(t, leader)
	for round := range 2 {
		// The leader is busy with requests that the other hub accepted.
		leader.count()
		acknowledged := begin(t, other)
		framework.Eventually(t, framework.Long, func() error {
			if len(leader.wrote()) == 0 {
				return fmt.Errorf("the leader does nothing")
			}
			return nil
		})
		require.NoError(t, leader.Signal(syscall.SIGSTOP))
		took := other.follows(t, true)
		require.Less(t, took, replaced)
		begun := acknowledged()
		other.finished(t, append(begun, other.works(t, org)))

		leader.count()
		before := led(leader)
		require.NoError(t, leader.Signal(syscall.SIGCONT))
		leader.ready(t)
		leader.finished(t, begun)
		for range 50 {
			leads, err := leader.leads()
			require.NoError(t, err)
			require.False(t, leads, "both lead")
		}
		require.Empty(t, leader.wrote(), "nobody asked it for anything, and it does not lead")
		leader.works(t, org)
		require.NotEmpty(t, leader.wrote(), "the control: it writes what it is asked for")
		require.Equal(t, before, led(leader), "it leads anew")
		t.Logf("round %d: paused, the other leads after %s and finishes %d Orgs", round, took.Round(time.Millisecond), len(begun))
		leader, other = other, leader
	}
}

// led is the number of times that a hub became the leader.
func led(p *process) int { return strings.Count(p.Output.String(), "this replica leads\t") }

func TestHub_startsBeforeItsKCP(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*framework.Faults){
		"connections are refused": (*framework.Faults).Refuse,
		"nothing comes back":      (*framework.Faults).Swallow,
	} {
		t.Run(name, func(t *testing.T) {
			framework.Sample(t, 2)
			t.Parallel()
			faults := framework.NewFaults(t, kcp)
			gone(faults)
			hub := startProcess(t, faults, framework.NewRoot())
			framework.Eventually(t, framework.Long, func() error {
				a, err := framework.Readiness(hub.metrics)
				if err == nil && (a.Code != http.StatusServiceUnavailable || !strings.Contains(string(a.Raw), "[-]kcp not ready: it does not answer")) {
					err = fmt.Errorf("%d: %s", a.Code, a.Raw)
				}
				return err
			})
			for _, path := range []string{"/api/users/me", "/api/orgs", "/clusters/abc/api/v1/namespaces"} {
				began := time.Now()
				a, err := hub.Try(framework.Call{As: "alice", Method: http.MethodGet, Path: path})
				require.NoError(t, refusedFor(a, time.Since(began), err), path)
			}
			hub.Do(t, framework.Call{Method: http.MethodGet, Path: "/healthz"}, http.StatusOK)
			faults.Restore(t)
			hub.ready(t)
			hub.CreateOrg(t, "alice", "ACME")
		})
	}
}
