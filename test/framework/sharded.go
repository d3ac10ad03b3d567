package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RootShard is the name of the shard that has kcp's workspace root.
const RootShard = "root"

// The names of the components that are not shards.
const cacheServer, frontProxy = "cache-server", "front-proxy"

// ShardedKCP is a kcp with several shards. Each shard, the cache server and the front proxy are
// processes of their own. The KCP is what hubs see of it: its kubeconfig names the front proxy.
type ShardedKCP struct {
	*KCP
	// shards are the names of those that were started.
	shards []string
	// ports are the ports of each component: its own and those of its etcd.
	ports     map[string][3]int
	processes map[string]*Process
	// grown is what the root shard was before it got others; nil for a root shard without data.
	grown *Grown
}

// Grown is a root shard that has data already, and its etcd runs.
type Grown struct {
	// TokenFile is that of the shard.
	TokenFile string
	// Start starts the shard with further flags, which come after its own.
	Start func(flags ...string) (*Process, error)
	// Flags are those which the other shards need besides, because the root shard has them.
	Flags []string
}

// StartShardedKCP starts a kcp with its data in dir, the root shard and others, and waits until
// all serve.
func StartShardedKCP(dir string, others ...string) (*ShardedKCP, error) {
	tokens := filepath.Join(dir, "tokens.csv")
	if err := WriteTokens(tokens); err != nil {
		return nil, err
	}
	return startSharded(dir, tokens, nil, others)
}

// GrowKCP is StartShardedKCP with a root shard that has data already. What is new lies in dir.
func GrowKCP(dir string, root Grown, others ...string) (*ShardedKCP, error) {
	return startSharded(dir, root.TokenFile, &root, others)
}

func startSharded(dir, tokens string, grown *Grown, others []string) (*ShardedKCP, error) {
	s := &ShardedKCP{
		KCP:    &KCP{Dir: dir, Kubeconfig: filepath.Join(dir, "admin.kubeconfig"), TokenFile: tokens},
		shards: append([]string{RootShard}, others...), ports: map[string][3]int{}, processes: map[string]*Process{}, grown: grown,
	}
	for _, name := range append([]string{cacheServer, frontProxy}, s.shards...) {
		if err := s.choosePorts(name); err != nil {
			return nil, err
		}
	}
	if err := s.writeFiles(); err != nil {
		return nil, err
	}
	if err := s.startAll(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// startAll starts all components, and waits until they serve.
func (s *ShardedKCP) startAll() error {
	// The components wait for each other.
	all := append(append([]string{cacheServer}, s.shards...), frontProxy)
	for _, name := range all {
		if err := s.start(name); err != nil {
			return err
		}
		if name == RootShard && s.grown != nil {
			// A front proxy of kcp 0.32 loses a shard whose URL changes while it runs.
			if err := s.awaitReady(name); err != nil {
				return err
			}
		}
	}
	for _, name := range all {
		if err := s.awaitReady(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *ShardedKCP) choosePorts(name string) error {
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = FreePort(); err != nil {
			return err
		}
	}
	s.ports[name] = ports
	return nil
}

// start starts a component without waiting for it.
func (s *ShardedKCP) start(name string) error {
	program, err := Bin("kcpserver")
	if err != nil {
		return err
	}
	args, err := s.flagsOf(name)
	if err != nil {
		return err
	}
	if name == RootShard && s.grown != nil {
		s.processes[name], err = s.grown.Start(args[1:]...)
		return err
	}
	s.processes[name], err = StartProcess(program, args...)
	return err
}

// StartShard starts a shard that has ended, or adds one, and waits until it serves.
func (s *ShardedKCP) StartShard(name string) error {
	if !slices.Contains(s.shards, name) {
		if err := s.choosePorts(name); err != nil {
			return err
		}
		s.shards = append(s.shards, name)
	}
	if err := s.start(name); err != nil {
		return err
	}
	return s.awaitReady(name)
}

// KillShard ends a shard as kill -9 does.
func (s *ShardedKCP) KillShard(name string) { s.processes[name].Kill() }

// Stop ends all components.
func (s *ShardedKCP) Stop() {
	for _, p := range s.processes {
		p.Kill()
	}
}

// awaitReady waits until a component reports that it is ready.
func (s *ShardedKCP) awaitReady(name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.file("root-shard.kubeconfig"))
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	process := s.processes[name]
	err = Wait(Long, func() error {
		select {
		case <-process.Ended():
			return nil
		default:
		}
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url(name)+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		return Equal(http.StatusOK, response.StatusCode)
	})
	select {
	case <-process.Ended():
		err = errors.New("it ended")
	default:
	}
	if err != nil {
		return fmt.Errorf("%s does not become ready: %w\n%s", name, err, process.Output)
	}
	return nil
}

// Unprivileged is the kcp for hubs whose user is HubUser.
func (s *ShardedKCP) Unprivileged() *KCP {
	k := *s.KCP
	k.shared = nil
	k.Kubeconfig = s.file(HubUser + ".kubeconfig")
	return &k
}

// Schedule has kcp put new logical clusters on these shards alone, and waits until the cache server
// tells the shards.
func (s *ShardedKCP) Schedule(t testing.TB, on ...string) {
	t.Helper()
	const annotation = "experimental.core.kcp.io/unschedulable"
	for _, name := range s.shards {
		value := `"true"`
		if slices.Contains(on, name) {
			value = "null"
		}
		_, errOut, err := s.Kubectl(t, "", "root", "patch", "shards.core.kcp.io", name, "--type=merge", "-p", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotation, value))
		require.NoError(t, err, errOut)
	}
	Eventually(t, Long, func() error {
		out, errOut, err := Kubectl(t, "", "--kubeconfig", s.file("cache.kubeconfig"), "get", "--raw", "/services/cache/shards/root/clusters/root/apis/core.kcp.io/v1alpha1/shards")
		if err != nil {
			return fmt.Errorf("%w: %s", err, errOut)
		}
		var list kcpcorev1alpha1.ShardList
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return err
		}
		for _, shard := range list.Items {
			if _, excluded := shard.Annotations[annotation]; excluded == slices.Contains(on, shard.Name) {
				return fmt.Errorf("the cache server has another annotation of shard %s", shard.Name)
			}
		}
		return Equal(len(s.shards), len(list.Items))
	})
}

// ShardOf returns the name of the shard that a logical cluster lies on.
func (s *ShardedKCP) ShardOf(t testing.TB, cluster string) string {
	t.Helper()
	clients := s.Clients(t)
	lc, err := clients.LogicalClusters(clients.ClusterURL(cluster)).Get(t.Context(), kcpcorev1alpha1.LogicalClusterName, metav1.GetOptions{})
	require.NoError(t, err)
	return lc.Annotations[kcpcorev1alpha1.LogicalClusterShardAnnotationKey]
}
