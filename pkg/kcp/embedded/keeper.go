package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/storage"
)

const (
	// defaultQuota is the quota of a hub that has none.
	defaultQuota = 8 << 30
	// etcdReserve is how much larger etcd's own quota is than that of the hub.
	etcdReserve = 64 << 20

	// measureEvery is the interval at which the database is measured.
	measureEvery = 250 * time.Millisecond
	// history is what a compaction keeps, for watches and lists that are behind. shortHistory is what it
	// keeps near the first floor.
	history, shortHistory = 10 * time.Second, time.Second
	// callTimeout limits a call that etcd answers from memory; workTimeout one that copies data.
	callTimeout, workTimeout = 5 * time.Second, 10 * time.Minute
	// margin is the free space, and the space below etcd's quota, that a defragmentation must leave.
	margin = 2 << 20
)

func newMaintained() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_etcd_maintenance_total",
		Help: "Work on the database of the embedded etcd, by action (compact, defragment or disarm) and result (ok or error).",
	}, []string{"action", "result"})
}

// measurement is what etcd says of its database.
type measurement struct {
	at time.Time
	// size is that of the file, which counts against etcd's quota, and used the part in use.
	size, used int64
	revision   int64
	member     uint64
	// noSpace is true after etcd has refused a write: it refuses all until it is disarmed.
	noSpace bool
}

// keeper keeps room in the database of etcd.
type keeper struct {
	etcd *clientv3.Client
	// copying keeps a defragmentation apart from snapshots.
	copying *copying
	// quota is that of the hub, and limit the size of the file at which etcd refuses writes.
	quota, limit int64
	// measured is told the usage.
	measured func(context.Context, storage.Usage)
	count    *prometheus.CounterVec
	// free returns the free space of the disk.
	free func() (int64, error)

	// seen are the last measurements, the oldest first. compacted is the revision of the last
	// compaction, and kept the part in use after it, or the smallest since.
	seen            []measurement
	compacted, kept int64
}

// newKeeper returns a keeper of the etcd that runs in dir.
func (s *Server) newKeeper(dir string) (*keeper, error) {
	etcd, err := s.etcdClient(dir)
	if err != nil {
		return nil, err
	}
	k := &keeper{
		etcd: etcd, copying: s.copying, quota: s.options.EtcdQuota, limit: s.options.EtcdQuota + etcdReserve, count: s.maintained,
		free: func() (int64, error) { return disk.Free(dir) },
	}
	if s.options.Storage != nil {
		k.measured = func(ctx context.Context, u storage.Usage) { s.options.Storage.Measured(ctx, storage.EtcdStore, u) }
	}
	return k, nil
}

// run measures and works until ctx ends. etcd must run until it has returned.
func (k *keeper) run(ctx context.Context) {
	defer func() { _ = k.etcd.Close() }()
	work := make(chan measurement, 1)
	var working sync.WaitGroup
	working.Go(func() {
		for m := range work {
			k.work(ctx, m)
		}
	})
	defer working.Wait()
	defer close(work)
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		if m, err := k.measure(ctx); err == nil {
			if k.measured != nil {
				k.measured(ctx, storage.Usage{Used: m.used, Limit: k.quota, Refuses: m.noSpace})
			}
			select {
			case work <- m:
			default:
				// The work on an earlier measurement goes on.
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (k *keeper) measure(ctx context.Context) (measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Client.Status makes a connection of its own for each call.
	s, err := etcdserverpb.NewMaintenanceClient(k.etcd.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return measurement{}, err
	}
	m := measurement{at: time.Now(), member: s.Header.MemberId, size: s.DbSize, used: s.DbSizeInUse, revision: s.Header.Revision}
	for _, e := range s.Errors {
		m.noSpace = m.noSpace || strings.Contains(e, etcdserverpb.AlarmType_NOSPACE.String())
	}
	return m, nil
}

// work does what a measurement asks for. What it has begun it ends, even if ctx ends: etcd panics when it
// stops during a compaction.
func (k *keeper) work(ctx context.Context, m measurement) {
	if ctx.Err() != nil {
		return
	}
	if revision := k.due(m); revision > 0 {
		err := k.compact(ctx, revision)
		k.did(ctx, "compact", err)
		if err == nil && m.noSpace {
			// etcd counts pages as free a few commits after the compaction, and refuses every write that
			// would make one. To disarm makes one. The next write for which there is no room arms it again.
			k.did(ctx, "disarm", k.disarm(ctx, m.member))
		}
	}
	if m.size <= k.quota && !m.noSpace {
		return
	}
	m, err := k.measure(ctx)
	if err != nil {
		return
	}
	if gain := m.size - m.used; gain >= k.quota/10 || m.noSpace && gain >= 2*margin {
		if err := k.defragmentable(m); err != nil {
			k.did(ctx, "defragment", err)
		} else {
			k.did(ctx, "defragment", k.defragment(ctx))
		}
		if m, err = k.measure(ctx); err != nil {
			return
		}
	}
	if m.noSpace && m.size+margin < k.limit {
		k.did(ctx, "disarm", k.disarm(ctx, m.member))
	}
}

// due returns the revision to compact at, or 0. A compaction is due when history has taken an eighth of
// the quota, and while the database is so full that growth is refused or stays refused: what a tenant
// deletes is room only after a compaction.
func (k *keeper) due(m measurement) (revision int64) {
	k.seen = append(k.seen, m)
	if k.kept == 0 || m.used < k.kept {
		k.kept = m.used
	}
	keep, nearly := history, m.noSpace || storage.Usage{Used: m.used, Limit: k.quota}.Near()
	if nearly {
		keep = shortHistory
	}
	for i, old := range k.seen {
		if m.at.Sub(old.at) < keep {
			// The others are older than what is kept, and the next may need this one.
			k.seen = k.seen[max(i-1, 0):]
			break
		}
		revision = old.revision
	}
	if revision <= k.compacted || !nearly && m.used-k.kept < k.quota/8 {
		return 0
	}
	return revision
}

func (k *keeper) compact(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
	defer cancel()
	// etcd answers when the space is free.
	_, err := k.etcd.Compact(ctx, revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	k.compacted, k.kept = revision, 0
	return nil
}

// defragmentable returns an error if the disk has no room for the copy that a defragmentation makes.
func (k *keeper) defragmentable(m measurement) error {
	free, err := k.free()
	if err == nil && free < m.used+margin {
		err = fmt.Errorf("a defragmentation needs %d bytes of free disk space, and there are %d", m.used+margin, free)
	}
	return err
}

func (k *keeper) defragment(ctx context.Context) error {
	return k.copying.defragment(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
		defer cancel()
		_, err := k.etcd.Defragment(ctx, k.etcd.Endpoints()[0])
		return err
	})
}

// disarm ends the alarm, so that etcd writes again.
func (k *keeper) disarm(ctx context.Context, member uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	// The other alarm says that the data is corrupt, which no maintenance heals.
	_, err := k.etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: member, Alarm: etcdserverpb.AlarmType_NOSPACE})
	return err
}

// did counts and logs what was done.
func (k *keeper) did(ctx context.Context, action string, err error) {
	if ctx.Err() != nil {
		return
	}
	result, logger := "ok", log.From(ctx)
	switch {
	case err != nil:
		result = "error"
		logger.Warn("etcd could not be maintained", zap.String("action", action), zap.Error(err))
	case action == "compact":
		logger.Debug("etcd was maintained", zap.String("action", action))
	default:
		logger.Info("etcd was maintained", zap.String("action", action))
	}
	k.count.WithLabelValues(action, result).Inc()
}
