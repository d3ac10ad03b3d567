package disk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
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

// Monitor tells whether the disk with the data of the embedded kcp is full. While it is, only kcp
// itself writes, to the space that is reserved for it: etcd ends the process at a write without
// room. Until Watch runs the disk counts as not full, which is how a hub with an external kcp
// uses a Monitor.
type Monitor struct {
	free func() (int64, error)
	room atomic.Pointer[room]
}

// room is the state of the disk.
type room struct {
	full bool
	// over is closed when the state changes.
	over chan struct{}
}

// NewMonitor returns a Monitor of the file system of dir. It registers kedge_data_disk_full.
func NewMonitor(dir string, metrics prometheus.Registerer) (*Monitor, error) {
	d := &Monitor{free: func() (int64, error) { return Free(dir) }}
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

// Watch checks the disk until ctx ends.
func (d *Monitor) Watch(ctx context.Context) {
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

func (d *Monitor) look(ctx context.Context) {
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

// Err returns nil while there is room, and the error for clients otherwise.
func (d *Monitor) Err() error {
	if !d.room.Load().full {
		return nil
	}
	e := errs.New(errs.Unavailable, "the disk of the hub's data directory is full, so the hub is read-only; the operator of the hub can free space, and it continues by itself")
	e.RetryAfter = retryFull
	return e
}

// WriteRight is the fencing right of writes for callers: they fail while the disk is full.
func (d *Monitor) WriteRight() (until time.Time, err error) { return time.Time{}, d.Err() }

// RunWhileRoom runs a func while the disk is not full, and again each time it has room again.
func (d *Monitor) RunWhileRoom(ctx context.Context, run func(context.Context)) {
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
