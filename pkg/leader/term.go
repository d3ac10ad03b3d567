package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// renewed is told that a renewal which began then has succeeded. Where only the wall
// clock said meanwhile that the right had ended, it goes on: nobody else has had the
// lease, or this would not have succeeded.
func (t *term) renewed(began moment) {
	l := t.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.over:
	case t.held && !began.monotonic.Before(l.until.monotonic):
		// What lead knows is too old to be built upon.
		t.endLocked()
	default:
		t.held, l.until = true, began.add(l.timing.Renew)
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
		t.over, t.leader.until = true, moment{}
		t.stop()
	}
}

// begun tells whether there is anything to lead still.
func (t *term) begun() bool {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	return !t.over
}

// expire ends the term as soon as the right to write ends by the monotonic clock. By
// the wall clock alone, the next renewal tells: that may have been set.
func (t *term) expire(ctx context.Context) {
	for {
		left := t.left()
		if left <= 0 {
			t.end()
			return
		}
		timer := t.leader.clock.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

func (t *term) left() time.Duration {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	return t.leader.until.monotonic.Sub(t.leader.now().monotonic)
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
	switch {
	case err == nil:
		l.holder = record.HolderIdentity
	case apierrors.IsNotFound(err):
		// It was removed, and others may have held it since.
		l.holder = ""
	default:
		return record, raw, err
	}
	if l.holder != l.Identity() {
		l.term.taken()
	}
	return record, raw, err
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
	began := l.term.leader.now()
	if err := write(ctx, record); err != nil {
		return err
	}
	l.term.renewed(began)
	return nil
}
