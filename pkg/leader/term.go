package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is one term of a replica: it is a candidate, then the leader, then neither.
type term struct {
	leader *Leader
	stop   context.CancelFunc
	// led is closed when lead has returned.
	led     chan struct{}
	running sync.WaitGroup

	// held and over are guarded by the mutex of the Leader.
	held, over bool
}

// renewed is called after a successful renewal that started at began. If the right had ended by
// the wall clock only, the term continues: the renewal would have failed if another replica had
// taken the Lease.
func (t *term) renewed(began moment) {
	l := t.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.over:
	case t.held && !began.monotonic.Before(l.until.monotonic):
		// The right ended by the monotonic clock, so the caches of lead may be outdated.
		t.endLocked()
	default:
		t.held, l.until = true, began.add(l.timing.Renew)
	}
}

// taken is called when the Lease is held by another replica or by none.
func (t *term) taken() {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	if t.held {
		t.endLocked()
	}
}

// withdraw ends the term if the Lease is not held yet. Otherwise lead returns first.
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

// begun reports whether the term is not over.
func (t *term) begun() bool {
	t.leader.mu.Lock()
	defer t.leader.mu.Unlock()
	return !t.over
}

// expire ends the term when the right to write ends by the monotonic clock. An end by the wall
// clock alone is left to the next renewal, because that clock can be set.
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

// wait waits until all goroutines of the term have returned.
func (t *term) wait() {
	t.leader.mu.Lock()
	held := t.held
	t.leader.mu.Unlock()
	if held {
		<-t.led
		t.running.Wait()
	}
}

// timedLock is a lock that reports renewals and losses to its term.
type timedLock struct {
	resourcelock.Interface
	term *term
	// timeout limits a request, so that another fits into the duration of a right to write.
	timeout time.Duration
	// holder is the holder of the Lease when it was last read.
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
		// The Lease was deleted, and others may have held it since.
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
	// A release. The elector reads the Lease before it but does not check the holder, which
	// can be another replica after a pause.
	if l.holder != l.Identity() {
		return errTaken
	}
	// Other replicas must not take the Lease before lead has returned.
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
