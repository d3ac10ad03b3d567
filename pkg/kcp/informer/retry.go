package informer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// persistent is the back-off of lists and watches. Reflectors have one of their own
// that grows to half a minute, which memory would then be behind a kcp that is back.
func persistent() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 6, Cap: time.Second}
}

// persist tries until it succeeds, ctx ends, or kcp says what the reflector has to
// know: that it does not have that version any more, or not yet. While kcp is gone
// nothing is tried.
func persist(ctx context.Context, health *transport.Health, try func() error) error {
	delay := persistent()
	for {
		if _, err := health.Await(ctx); err != nil {
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

const (
	// shortest is how long a watch lasts at the least, so that a kcp which ends them
	// all is not asked all the time.
	shortest = 200 * time.Millisecond
	// maxBroken is how many watches in a row may break before they bring anything:
	// there may be something in them that only a list gets past.
	maxBroken = 20
)

// watches makes watches that a reflector goes on with from where they ended: of one
// that brings nothing and ends within a second, or breaks, it thinks that kcp does
// not want it, and waits ever longer for the next.
type watches struct{ broken atomic.Int64 }

// lasting is one of them.
type lasting struct {
	watch.Interface
	of     *watches
	events chan watch.Event
	stop   chan struct{}
	once   sync.Once
}

// last returns a watch that began then. It ends with unchanged, which holds the
// version that it began with, where nothing else came.
func (s *watches) last(w watch.Interface, began time.Time, unchanged runtime.Object) watch.Interface {
	l := &lasting{Interface: w, of: s, events: make(chan watch.Event), stop: make(chan struct{})}
	go l.run(began, watch.Event{Type: watch.Bookmark, Object: unchanged})
	return l
}

func (l *lasting) run(began time.Time, unchanged watch.Event) {
	defer close(l.events)
	came := false
	for event := range l.Interface.ResultChan() {
		if event.Type == watch.Error && l.of.mends(event.Object) {
			break
		}
		if came = true; !l.send(event) {
			return
		}
		l.of.broken.Store(0)
	}
	timer := time.NewTimer(shortest - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.stop:
	}
	if !came {
		l.send(unchanged)
	}
}

// mends tells whether another watch may do better than one that ended with this.
func (s *watches) mends(status runtime.Object) bool {
	err := apierrors.FromObject(status)
	return !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && s.broken.Add(1) <= maxBroken
}

func (l *lasting) send(event watch.Event) bool {
	select {
	case l.events <- event:
		return true
	case <-l.stop:
		return false
	}
}

// ResultChan implements watch.Interface.
func (l *lasting) ResultChan() <-chan watch.Event { return l.events }

// Stop implements watch.Interface.
func (l *lasting) Stop() {
	l.once.Do(func() { close(l.stop) })
	l.Interface.Stop()
}
