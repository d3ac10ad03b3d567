package framework

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/server"
)

// Hub is a hub in this process, in front of a kcp in another.
type Hub struct {
	*Client
	Options *server.Options
	Metrics string
	Log     *Output
	stop    context.CancelFunc
	ended   chan error
}

// NewRoot returns the path of a root workspace that no other test uses.
func NewRoot() string { return "root:t-" + strings.ToLower(rand.Text()[:12]) }

// StartHub starts a hub under the root workspace and waits until it is ready. It stops
// when the test ends. Most tests do with a hub of KCP.Shared.
func StartHub(t testing.TB, kcp *KCP, root string, change ...func(*server.Options)) *Hub {
	t.Helper()
	return StartTogether(t, kcp, root, 1, change...)[0]
}

// StartTogether is StartHub for hubs that start at the same time.
func StartTogether(t testing.TB, kcp *KCP, root string, n int, change ...func(*server.Options)) []*Hub {
	t.Helper()
	hubs, errs := make([]*Hub, n), make([]error, n)
	var starts sync.WaitGroup
	for i := range hubs {
		dir := t.TempDir()
		starts.Go(func() { hubs[i], errs[i] = newHub(dir, kcp, root, change...) })
	}
	starts.Wait()
	for _, h := range hubs {
		if h != nil {
			t.Cleanup(func() {
				h.Stop(t)
				h.warned(t)
			})
		}
	}
	require.NoError(t, errors.Join(errs...))
	return hubs
}

// newHub starts a hub with its data in dir, and waits until it is ready. With an error it can have started.
func newHub(dir string, kcp *KCP, root string, change ...func(*server.Options)) (*Hub, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	metricsPort, err := FreePort()
	if err != nil {
		return nil, err
	}
	o := server.NewOptions()
	o.DataDir = dir
	o.ListenAddress = fmt.Sprintf("127.0.0.1:%d", port)
	o.MetricsListenAddress = fmt.Sprintf("127.0.0.1:%d", metricsPort)
	o.KCPKubeconfig, o.TokenFile, o.RootWorkspace = kcp.Kubeconfig, kcp.TokenFile, root
	// Writes wait for reconciliation, which is slow on a slow machine.
	o.CreateTimeout, o.FollowTimeout = time.Minute, time.Minute
	// Spares take time from other tests, and most tests count what kcp has.
	o.Spares.Organizations, o.Spares.Workspaces = 0, 0
	// Most tests do not need the objects that sign-up creates.
	o.PersonalOrgs = false
	// All callers of a test have one address. Tests send more bad tokens, newcomers and logins
	// from it than a peer may.
	o.Limits.FailedAuthenticationsPerPeer, o.Limits.SignUpsPerPeer, o.Limits.LoginsPerPeer, o.Limits.DeviceLoginsPerPeer = 0, 0, 0, 0
	o.Limits.SignUps, o.Limits.Logins, o.Limits.InvitationsPerPeer = 0, 0, 0
	// Each shard of the kcp of a test is one process.
	o.Policy.EnforcementWindow = 0
	for _, f := range change {
		f(o)
	}
	config, err := o.Complete()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &Hub{Options: o, Metrics: "http://" + o.MetricsListenAddress + "/metrics", Log: &Output{}, stop: stop, ended: make(chan error, 1)}
	logger, err := log.New("console", "info", h.Log)
	if err != nil {
		stop()
		return nil, err
	}
	go func() { h.ended <- server.Run(log.Into(ctx, logger), config, nil, h.Log) }()
	// One client is reused, because each new one costs the hub a TLS handshake.
	// Handshakes are slow under the race detector.
	return h, Wait(Long, func() (err error) {
		if h.Client == nil {
			if h.Client, err = NewClient("https://"+o.ListenAddress, filepath.Join(o.DataDir, "tls", "ca.crt")); err != nil {
				return err
			}
		}
		a, err := h.Try(Call{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("not ready: %s\n%s", a.Raw, h.Log)
		}
		return err
	})
}

// Readiness returns the details of a hub's readiness from its metrics listener. The
// argument is the URL of /metrics.
func Readiness(metrics string) (Answer, error) {
	operators := &Client{URL: strings.TrimSuffix(metrics, "/metrics"), HTTP: http.DefaultClient}
	return operators.Try(Call{Method: http.MethodGet, Path: "/readyz?verbose"})
}

// warned logs the hub's warnings in a test that failed.
func (h *Hub) warned(t testing.TB) {
	if t.Failed() {
		t.Logf("the hub at %s warned:\n%s", h.Options.ListenAddress, h.Log.warnings())
	}
}

// Stop ends the hub and waits until it has drained.
func (h *Hub) Stop(t testing.TB) { require.NoError(t, h.end()) }

func (h *Hub) end() error {
	h.stop()
	if h.Client != nil {
		h.HTTP.CloseIdleConnections()
	}
	select {
	case err := <-h.ended:
		h.ended <- err
		return err
	case <-time.After(Long):
		return fmt.Errorf("the hub did not stop: %s", h.Log)
	}
}
