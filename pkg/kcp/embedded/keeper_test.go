package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	etcdoptions "github.com/kcp-dev/embeddedetcd/options"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/faroshq/kedge-hub/pkg/storage"
)

// long is the limit of every wait, for slow machines.
const long = 2 * time.Minute

const (
	// testQuota is the quota of the hub, and testLimit that of etcd.
	testQuota, testLimit = 16 << 20, 24 << 20
	mib                  = 1 << 20
)

func freePorts(t *testing.T) (client, peer int) {
	t.Helper()
	for _, port := range []*int{&client, &peer} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", host+":0")
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return client, peer
}

// newEtcd starts an etcd and returns a keeper of it that does not run.
func newEtcd(t *testing.T) *keeper { return newEtcdIn(t, t.TempDir()) }

// newEtcdIn is newEtcd in a folder of kcp.
func newEtcdIn(t *testing.T, dir string) *keeper {
	t.Helper()
	_, k := newServerIn(t, dir)
	return k
}

// newServerIn is newEtcdIn with the Server that makes snapshots of the etcd, and has no kcp.
func newServerIn(t *testing.T, dir string) (*Server, *keeper) {
	t.Helper()
	client, peer := freePorts(t)
	o := etcdoptions.NewOptions(dir)
	o.Enabled, o.ClientPort, o.PeerPort, o.QuotaBackendBytes = true, strconv.Itoa(client), strconv.Itoa(peer), testLimit
	etcd, err := configureEtcd(o.Complete(genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/", nil))), false, time.Now())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	require.NoError(t, startEtcd(ctx, etcd))
	t.Cleanup(func() { stop(); awaitStopped(etcd) })
	s := &Server{options: Options{Dir: dir, EtcdClientPort: client, EtcdQuota: testQuota}, maintained: newMaintained(), copying: newCopying()}
	k, err := s.newKeeper(o.Directory)
	require.NoError(t, err)
	k.limit = testLimit
	return s, k
}

func (k *keeper) put(t *testing.T, key string, size int) error {
	t.Helper()
	_, err := k.etcd.Put(t.Context(), key, strings.Repeat("x", size))
	return err
}

// fill writes until etcd refuses. name returns the key of the n-th write.
func (k *keeper) fill(t *testing.T, name func(int) string) {
	t.Helper()
	for n := range 2 * testLimit / mib {
		if err := k.put(t, name(n), mib); err != nil {
			require.ErrorIs(t, err, rpctypes.ErrNoSpace)
			return
		}
	}
	require.Fail(t, "etcd took it all")
}

// start runs the keeper until the test ends. usage returns a measurement that began after the call, and first has the
// first one, before which the keeper has done nothing.
func (k *keeper) start(t *testing.T) (usage func() storage.Usage, first <-chan storage.Usage) {
	t.Helper()
	last, begin := make(chan storage.Usage, 1), make(chan storage.Usage, 1)
	k.measured = func(_ context.Context, u storage.Usage) {
		select {
		case begin <- u:
		default:
		}
		select {
		case <-last:
		default:
		}
		last <- u
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); k.run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return func() storage.Usage {
		// The one that waits, and the one that may be under way, are older than the call.
		select {
		case <-last:
		default:
		}
		<-last
		return <-last
	}, begin
}

// awaitUse waits until etcd writes and uses less than limit bytes. It writes meanwhile, as kcp does all the
// time: pages that a transaction frees count as used until the next one, which an idle etcd never has.
func (k *keeper) awaitUse(t *testing.T, usage func() storage.Usage, limit int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := k.put(t, "lease", 10)
		u := usage()
		return err == nil && !u.Refuses && u.Used < limit
	}, long, 50*time.Millisecond)
}

func (k *keeper) done(action, result string) float64 {
	return testutil.ToFloat64(k.count.WithLabelValues(action, result))
}

// One key is written again and again until etcd refuses everything. It writes again without a restart
// and without a person.
func TestKeeper_healsNoSpaceOfAHotKey(t *testing.T) {
	t.Parallel()
	k := newEtcd(t)
	require.NoError(t, k.put(t, "kept", 10))
	k.fill(t, func(int) string { return "hot" })
	require.ErrorIs(t, k.put(t, "ending", 10), rpctypes.ErrNoSpace)
	m, err := k.measure(t.Context())
	require.NoError(t, err)
	require.True(t, m.noSpace)
	usage, first := k.start(t)
	require.True(t, (<-first).Refuses)
	require.Eventually(t, func() bool { return k.put(t, "ending", 10) == nil }, long, 50*time.Millisecond)
	k.awaitUse(t, usage, 4*mib)
	for _, key := range []string{"kept", "hot", "ending"} {
		got, err := k.etcd.Get(t.Context(), key)
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1, "%s: nothing acknowledged is lost", key)
	}
	require.Positive(t, k.done("compact", "ok"))
	require.Positive(t, k.done("defragment", "ok"))
	require.Positive(t, k.done("disarm", "ok"))
}

// History takes no more than a part of the quota, so that the same key can be written for ever.
func TestKeeper_compactsHistoryBySize(t *testing.T) {
	t.Parallel()
	k := newEtcd(t)
	usage, _ := k.start(t)
	for n := range 12 * testLimit / mib {
		// On a busy machine a compaction comes later than the next writes. Free pages that do not follow each other have
		// no room for one value, so that the file of a busy etcd can be larger than what is used.
		if n%16 == 0 {
			k.awaitUse(t, usage, testQuota*8/10)
		}
		require.NoError(t, k.put(t, "hot", mib/4))
	}
	require.Positive(t, k.done("compact", "ok"))
	require.Zero(t, k.done("disarm", "ok"))
	k.awaitUse(t, usage, testQuota*8/10)
}

// While tenants' objects fill etcd, deletions pass, and are what heals it.
func TestKeeper_waitsForDeletionsWhereTheObjectsThemselvesFillEtcd(t *testing.T) {
	t.Parallel()
	k := newEtcd(t)
	k.fill(t, func(n int) string { return fmt.Sprint("object", n) })
	usage, _ := k.start(t)
	// Each write is of a new key. To write one key again makes history, and its compaction makes room for
	// the next write: the refusals would come and go for ever.
	more := 0
	require.Eventually(t, func() bool {
		more++
		return k.put(t, fmt.Sprint("more", more), mib) != nil && k.done("compact", "ok") > 0 && usage().Refuses
	}, long, 50*time.Millisecond)
	// Nobody knows how many there are: etcd looks at its size after each commit, and so takes more than its limit
	// from somebody who is fast.
	for _, keys := range []string{"object", "more"} {
		_, err := k.etcd.Delete(t.Context(), keys, clientv3.WithPrefix())
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return k.put(t, "new", mib) == nil }, long, 50*time.Millisecond)
	k.awaitUse(t, usage, testQuota*8/10)
}

// A defragmentation copies the database. Where the disk has no room for that it is not begun.
func TestKeeper_doesNotFillTheDiskByADefragmentation(t *testing.T) {
	t.Parallel()
	k := newEtcd(t)
	room := make(chan struct{})
	k.free = func() (int64, error) {
		select {
		case <-room:
			return 1 << 30, nil
		default:
			return mib, nil
		}
	}
	k.fill(t, func(int) string { return "hot" })
	k.start(t)
	require.Eventually(t, func() bool { return k.done("defragment", "error") > 0 }, long, 50*time.Millisecond)
	require.Zero(t, k.done("defragment", "ok"))
	close(room)
	require.Eventually(t, func() bool { return k.put(t, "new", 10) == nil }, long, 50*time.Millisecond)
}

func TestKeeper_whenACompactionIsDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	at := func(after time.Duration, used, revision int64) measurement {
		return measurement{at: now.Add(after), used: used, revision: revision}
	}
	const quota = 1000
	for name, c := range map[string]struct {
		seen []measurement
		want int64
	}{
		"little history":                       {[]measurement{at(0, 100, 1), at(11*time.Second, 200, 9)}, 0},
		"much history":                         {[]measurement{at(0, 100, 1), at(5*time.Second, 150, 5), at(11*time.Second, 300, 9)}, 1},
		"much history of a moment":             {[]measurement{at(0, 100, 1), at(5*time.Second, 300, 9)}, 0},
		"above the first floor":                {[]measurement{at(0, 800, 1), at(2*time.Second, 800, 9)}, 1},
		"below it, and not enough to leave it": {[]measurement{at(0, 790, 1), at(2*time.Second, 790, 9)}, 1},
		"enough to leave it":                   {[]measurement{at(0, 770, 1), at(2*time.Second, 770, 9)}, 0},
		"above the first floor, of a moment":   {[]measurement{at(0, 800, 1), at(time.Second/2, 850, 9)}, 0},
	} {
		k := &keeper{quota: quota}
		var got int64
		for _, m := range c.seen {
			got = k.due(m)
		}
		require.Equal(t, c.want, got, name)
	}
	k := &keeper{quota: quota, compacted: 1}
	k.due(at(0, 800, 1))
	require.Zero(t, k.due(at(11*time.Second, 800, 9)), "nothing is compacted twice")
}

func TestKeeper_corruptionIsNotDisarmed(t *testing.T) {
	t.Parallel()
	k := newEtcd(t)
	defer func() { _ = k.etcd.Close() }()
	m, err := k.measure(t.Context())
	require.NoError(t, err)
	require.False(t, m.noSpace)
	require.NotZero(t, m.member, "only the alarm of this member about space is disarmed")
	require.NoError(t, k.disarm(t.Context(), m.member))
}

func TestKeeper_doesNotDefragmentADiskThatItCannotMeasure(t *testing.T) {
	t.Parallel()
	k := &keeper{free: func() (int64, error) { return 0, errors.ErrUnsupported }}
	require.ErrorIs(t, k.defragmentable(measurement{used: 1}), errors.ErrUnsupported)
}
