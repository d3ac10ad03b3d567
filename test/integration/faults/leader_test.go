package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	hubkcp "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/leader"
	"github.com/faroshq/kedge-hub/test/framework"
)

// candidate is one of the replicas that compete for a Lease in a real kcp.
type candidate struct {
	*leader.Leader
	fenced  *hubkcp.Clients
	blocked *atomic.Bool
	stop    context.CancelFunc
	ended   chan struct{}
	leads   chan context.Context
}

// cutLock is a lock whose connection to kcp can be cut.
type cutLock struct {
	resourcelock.Interface
	blocked *atomic.Bool
}

func (l cutLock) cut(ctx context.Context) error {
	if l.blocked.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l cutLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.cut(ctx); err != nil {
		return nil, nil, err
	}
	return l.Interface.Get(ctx)
}

func (l cutLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.cut(ctx); err != nil {
		return err
	}
	return l.Interface.Create(ctx, record)
}

func (l cutLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.cut(ctx); err != nil {
		return err
	}
	return l.Interface.Update(ctx, record)
}

// replaced is the time limit for another leader after a leader was killed or paused. It takes at
// most 12.1 s; the rest is for slow machines.
const replaced = 60 * time.Second

func campaign(t *testing.T, cluster string) *candidate {
	t.Helper()
	clients := kcp.Clients(t)
	c := &candidate{blocked: &atomic.Bool{}, ended: make(chan struct{}), leads: make(chan context.Context, 64)}
	var err error
	c.Leader, err = leader.New(leader.Config{
		Lock:    cutLock{Interface: leader.NewLease(clients, cluster), blocked: c.blocked},
		Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	c.fenced = clients.Fenced(c.Until)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.Run(ctx, func(ctx context.Context) {
			c.leads <- ctx
			<-ctx.Done()
		})
	}()
	t.Cleanup(func() { stop(); <-c.ended })
	return c
}

// lead waits until the candidate is the leader.
func (c *candidate) lead(t *testing.T) context.Context {
	t.Helper()
	select {
	case ctx := <-c.leads:
		return ctx
	case <-time.After(framework.Long):
		require.FailNow(t, "it does not lead")
		return nil
	}
}

// write creates a namespace as a reconciler does.
func (c *candidate) write(t *testing.T, cluster, name string) error {
	t.Helper()
	_, err := c.fenced.Namespaces(cluster).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// neverBoth checks continuously that the candidates may not write at the same time, until the
// returned func is called.
func neverBoth(t *testing.T, a, b *candidate) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, looked, both := make(chan struct{}), 0, false
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil && !both; looked++ {
			// Between the two checks the right can move to the other candidate, but not back.
			both = a.Allowed() == nil && b.Allowed() == nil && a.Allowed() == nil
			<-tick.C
		}
	}()
	return func() {
		cancel()
		<-ended
		require.Positive(t, looked)
		require.False(t, both, "both may write at once")
	}
}

func TestLeader_thatStopsIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	cluster := kcp.Universal(t)
	a := campaign(t, cluster)
	for i := range 5 {
		ctx := a.lead(t)
		b := campaign(t, cluster)
		stop := neverBoth(t, a, b)
		require.NoError(t, a.write(t, cluster, fmt.Sprintf("by-leader-%d", i)))
		require.ErrorIs(t, b.write(t, cluster, fmt.Sprintf("by-other-%d", i)), transport.ErrFenced)
		began := time.Now()
		a.stop()
		next := b.lead(t)
		took := time.Since(began)
		t.Logf("handed over after %s", took)
		// It takes at most 1.54 s. Longer means that the Lease was not released.
		require.Less(t, took, leader.DefaultTiming().Lease)
		require.Error(t, ctx.Err())
		require.NoError(t, next.Err())
		require.ErrorIs(t, a.Allowed(), leader.ErrNotLeading)
		stop()
		b.leads <- next
		a = b
	}
	out, errOut, err := kcp.Kubectl(t, "", cluster, "get", "namespaces", "-o", "name")
	require.NoError(t, err, errOut)
	require.Contains(t, out, "by-leader-4")
	require.NotContains(t, out, "by-other")
}

func TestLeader_withoutKCPIsFencedBeforeTheNext(t *testing.T) {
	t.Parallel()
	cluster := kcp.Universal(t)
	a, b := campaign(t, cluster), campaign(t, cluster)
	stop := neverBoth(t, a, b)
	for i := range 3 {
		var lost context.Context
		select {
		case lost = <-a.leads:
		case lost = <-b.leads:
			a, b = b, a
		case <-time.After(framework.Long):
			require.FailNow(t, "nobody leads")
		}
		require.NoError(t, a.write(t, cluster, fmt.Sprintf("before-%d", i)))
		a.blocked.Store(true)
		began := time.Now()
		// As after a kill -9, the Lease is not released.
		next := b.lead(t)
		took := time.Since(began)
		t.Logf("replaced after %s", took)
		require.Less(t, took, replaced)
		require.Error(t, lost.Err())
		require.ErrorIs(t, a.write(t, cluster, fmt.Sprintf("after-%d", i)), transport.ErrFenced)
		require.NoError(t, b.write(t, cluster, fmt.Sprintf("after-%d", i)))
		a.blocked.Store(false)
		b.leads <- next
	}
	stop()
}

func TestLease_isCreatedWithItsNamespace(t *testing.T) {
	t.Parallel()
	cluster := kcp.Universal(t)
	// kcp creates the namespace, but possibly later; it cannot be deleted.
	c := campaign(t, cluster)
	c.lead(t)
	require.NoError(t, kcp.Prints(t, cluster, "get", "lease", leader.LeaseName, "-n", leader.LeaseNamespace, "-o", "jsonpath={.spec.leaseDurationSeconds}", "9"))
	c.stop()
	<-c.ended
	require.NoError(t, kcp.Prints(t, cluster, "get", "lease", leader.LeaseName, "-n", leader.LeaseNamespace, "-o", "jsonpath={.spec.holderIdentity}", ""))
}
