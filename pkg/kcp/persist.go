package kcp

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// persistent is the back-off of lists and watches. Reflectors have one of their own
// that grows to half a minute, which memory would then be behind a kcp that is back.
func persistent() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 6, Cap: time.Second}
}

// persist tries until it succeeds, ctx ends, or kcp says what the reflector has to
// know: that it does not have that version any more, or not yet. While kcp is gone
// nothing is tried.
func persist(ctx context.Context, pulse *Pulse, try func() error) error {
	delay := persistent()
	for {
		if _, err := pulse.Await(ctx); err != nil {
			return err
		}
		err := try()
		if err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) ||
			apierrors.IsBadRequest(err) || apierrors.IsTimeout(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay.Step()):
		}
	}
}

// shortest is how long a watch lasts at the least for a reflector: of one that ends
// before a second it thinks that kcp does not want it.
const shortest = 1050 * time.Millisecond

// lasting is a watch whose end is not told before its time.
type lasting struct {
	watch.Interface
	events chan watch.Event
	stop   chan struct{}
	once   sync.Once
}

func last(w watch.Interface, began time.Time) watch.Interface {
	l := &lasting{Interface: w, events: make(chan watch.Event), stop: make(chan struct{})}
	go l.run(began)
	return l
}

func (l *lasting) run(began time.Time) {
	defer close(l.events)
	for event := range l.Interface.ResultChan() {
		select {
		case l.events <- event:
		case <-l.stop:
			return
		}
	}
	timer := time.NewTimer(shortest - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.stop:
	}
}

// ResultChan implements watch.Interface.
func (l *lasting) ResultChan() <-chan watch.Event { return l.events }

// Stop implements watch.Interface.
func (l *lasting) Stop() {
	l.once.Do(func() { close(l.stop) })
	l.Interface.Stop()
}
