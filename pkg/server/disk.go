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
	// lookAtDisk is the interval at which the free space is checked.
	lookAtDisk = time.Second
	// The disk is full with less than tight bytes free, beside the space reserved for the
	// embedded kcp. It is not full any longer with roomy bytes free.
	tight, roomy = 64 << 20, 96 << 20
	// retryFull is the Retry-After of refused writes.
	retryFull = 10 * time.Second
)

// dataDisk is the disk with the data of the embedded kcp. While it is full, only kcp itself
// writes, to the space that is reserved for it: etcd ends the process at a write without room.
// With an external kcp the disk is never full.
type dataDisk struct {
	free func() (int64, error)
	room atomic.Pointer[room]
}

// room is the state of the disk.
type room struct {
	full bool
	// over is closed when the state changes.
	over chan struct{}
}

func newDataDisk(dataDir string, metrics prometheus.Registerer) (*dataDisk, error) {
	// The directory of kcp can be a mount of its own.
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

// watch checks the disk until ctx ends.
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
	// If the free space is unknown, the state does not change.
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

// err returns nil while there is room, and the error for clients otherwise.
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

// whileRoom runs a func while there is room, and again each time there is room again.
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
