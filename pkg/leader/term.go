package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is one time that a replica waits to lead, leads, and does not any more.
type term struct {
	leader *Leader
	stop   context.CancelFunc
	// led is closed when lead has returned.
	led     chan struct{}
	running sync.WaitGroup

	// Both are guarded by the leader's mu.
	held, over bool
}

// renewed is told that a renewal which began then has succeeded.
func (t *term) renewed(began time.Time) {
	l := t.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.over:
	case t.held && !began.Before(l.until):
		// The right had ended before: somebody else may have led since, so what lead
		// knows is not to be built upon.
		t.endLocked()
	default:
		t.held, l.until = true, began.Add(l.timing.Renew)
	}
}

// taken is told that somebody else holds the lease, or nobody.
func (t *term) taken() {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	if t.held {
		t.endLocked()
	}
}

// withdraw ends the term where the lease is not held yet; else lead comes to its
// end first.
func (t *term) withdraw() {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	if !t.held {
		t.endLocked()
	}
}

func (t *term) end() {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	t.endLocked()
}

func (t *term) endLocked() {
	if !t.over {
		t.over, t.leader.until = true, time.Time{}
		t.stop()
	}
}

// begun tells whether there is anything to lead still.
func (t *term) begun() bool {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	return !t.over
}

// expire ends the term as soon as the right to write does.
func (t *term) expire(ctx context.Context) {
	for {
		until, err := t.leader.Until()
		if err != nil {
			t.end()
			return
		}
		timer := t.leader.clock.NewTimer(until.Sub(t.leader.clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// wait waits until nothing of the term runs any more.
func (t *term) wait() {
	t.leader.mu.Lock()
	held := t.held
	t.leader.mu.Unlock()
	if held {
		<-t.led
		t.running.Wait()
	}
}

// timedLock tells a term what becomes of its lock.
type timedLock struct {
	resourcelock.Interface
	term *term
	// timeout of a request leaves time for another within a right to write.
	timeout time.Duration
	// holder is who held the lease when it was last read.
	holder string
}

var errTaken = errors.New("somebody else holds the lease")

func (l *timedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	if l.holder = record.HolderIdentity; l.holder != l.Identity() {
		l.term.taken()
	}
	return record, raw, nil
}

func (l *timedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(ctx, record, l.Interface.Create)
}

func (l *timedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		return l.renew(ctx, record, l.Interface.Update)
	}
	// A release, before which the elector reads the lease but does not look at it:
	// after a pause it may be another's.
	if l.holder != l.Identity() {
		return errTaken
	}
	// Nobody else may have it while lead still does something.
	select {
	case <-l.term.led:
		return l.Interface.Update(ctx, record)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *timedLock) renew(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	began := l.term.leader.clock.Now()
	if err := write(ctx, record); err != nil {
		return err
	}
	l.term.renewed(began)
	return nil
}
