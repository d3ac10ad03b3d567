package server

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// lookAtDisk is how often it is looked how much room there is.
	lookAtDisk = time.Second
	// With less than tight of the disk left, beside what the embedded kcp has set aside
	// for itself, it is full; with roomy there is room again.
	tight, roomy = 64 << 20, 96 << 20
	// retryFull is what a caller is told to wait.
	retryFull = 10 * time.Second
)

// dataDisk is where the embedded kcp keeps its data. While it is full nobody writes
// anything but kcp for itself, out of what it has set aside: without any, etcd ends
// the process. Where kcp is another's it is never full.
type dataDisk struct {
	free func() (int64, error)
	room atomic.Pointer[room]
}

// room is whether there is none.
type room struct {
	full bool
	// over is closed when that changes.
	over chan struct{}
}

func newDataDisk(dataDir string, metrics prometheus.Registerer) (*dataDisk, error) {
	// That of kcp may be mounted by itself.
	dir := filepath.Join(dataDir, "kcp")
	d := &dataDisk{free: func() (int64, error) { return disk.Free(dir) }}
	d.room.Store(&room{over: make(chan struct{})})
	return d, metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_data_disk_full",
		Help: "1 while writes are refused because the disk of the embedded kcp is full, else 0.",
	}, func() float64 {
		if d.room.Load().full {
			return 1
		}
		return 0
	}))
}

// watch looks at the disk until ctx ends.
func (d *dataDisk) watch(ctx context.Context) {
	ticker := time.NewTicker(lookAtDisk)
	defer ticker.Stop()
	for {
		d.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (d *dataDisk) look(ctx context.Context) {
	free, err := d.free()
	was := d.room.Load()
	full := free < tight || was.full && free < roomy
	// Where it is not told what there is, what was known holds.
	if err != nil || full == was.full {
		return
	}
	d.room.Store(&room{full: full, over: make(chan struct{})})
	close(was.over)
	if full {
		log.From(ctx).Error("the disk of --data-dir is full: nothing is written until there is room", zap.Int64("freeBytes", free), zap.Int64("neededBytes", roomy))
		return
	}
	log.From(ctx).Info("the disk of --data-dir has room again: writes go on", zap.Int64("freeBytes", free))
}

// err is nil while there is room, and what a caller is told otherwise.
func (d *dataDisk) err() error {
	if !d.room.Load().full {
		return nil
	}
	e := errs.New(errs.Unavailable, "the disk of the hub's data directory is full, so the hub is read-only; the operator of the hub can free space, and it continues by itself")
	e.RetryAfter = retryFull
	return e
}

// right is the fencing right of writes for callers: they fail while the disk is full.
func (d *dataDisk) right() (until time.Time, err error) { return time.Time{}, d.err() }

// whileRoom runs something that writes as long as there is room, and anew when there
// is again.
func (d *dataDisk) whileRoom(ctx context.Context, run func(context.Context)) {
	for ctx.Err() == nil {
		now := d.room.Load()
		if now.full {
			select {
			case <-ctx.Done():
			case <-now.over:
			}
			continue
		}
		running, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			select {
			case <-running.Done():
			case <-now.over:
				stop()
			}
		})
		run(running)
		stop()
		watching.Wait()
	}
}
