package informer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// retryBackoff is the back-off of lists and watches. That of reflectors grows to half a
// minute, for which the cache would stay behind a kcp that has recovered.
func retryBackoff() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 6, Cap: time.Second}
}

// retry tries until it succeeds, ctx ends, or kcp answers what the reflector must see:
// that the resource version is too old or not there yet. It does not try while kcp is
// unavailable. The silence has whether the endpoint answers.
func retry(ctx context.Context, health *transport.Health, silence *silence, try func() error) error {
	delay := retryBackoff()
	for {
		if _, err := health.Await(ctx); err != nil {
			return err
		}
		err := try()
		if ctx.Err() == nil {
			silence.observe(err)
		}
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

// silence is since when an endpoint does not answer. Only the connection counts, or a gateway that
// has none: an endpoint that is busy, or refuses, answers.
type silence struct {
	// changed is called when it begins and when it ends.
	changed func()
	since   atomic.Pointer[time.Time]
}

func (s *silence) observe(err error) {
	var status apierrors.APIStatus
	var connection *url.Error
	answered := !errors.As(err, &connection) && !errors.Is(err, errNoAnswer)
	if errors.As(err, &status) {
		code := status.Status().Code
		answered = code != http.StatusBadGateway && code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout
	}
	switch {
	case answered && s.since.Swap(nil) != nil:
		s.changed()
	case !answered:
		if now := time.Now(); s.since.CompareAndSwap(nil, &now) {
			s.changed()
		}
	}
}

// began is when it began, or zero if the endpoint answers.
func (s *silence) began() time.Time {
	if since := s.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

const (
	// minWatch is the shortest time that a watch lasts, so that a kcp which ends all of
	// them is not asked all the time.
	minWatch = 200 * time.Millisecond
	// maxBroken is how many watches in a row may break before they bring an event.
	// After that the objects are listed again, which may get past an event that cannot
	// be decoded.
	maxBroken = 20
)

// retryWatches makes watches after whose end a reflector watches on at once. A reflector
// lists again, after a growing back-off, when a watch ends within a second without an
// event, or with an error.
type retryWatches struct{ broken atomic.Int64 }

// retryWatch hides from the reflector that its watch has ended early or with an error
// that another watch may not meet.
type retryWatch struct {
	watch.Interface
	of     *retryWatches
	events chan watch.Event
	stop   chan struct{}
	once   sync.Once
}

// wrap returns the watch w, which began at that time. Where w brings no event the watch
// ends with a bookmark of unchanged, which has the resource version that it began with.
func (s *retryWatches) wrap(w watch.Interface, began time.Time, unchanged runtime.Object) watch.Interface {
	r := &retryWatch{Interface: w, of: s, events: make(chan watch.Event), stop: make(chan struct{})}
	go r.run(began, watch.Event{Type: watch.Bookmark, Object: unchanged})
	return r
}

func (r *retryWatch) run(began time.Time, unchanged watch.Event) {
	defer close(r.events)
	received := false
	for event := range r.Interface.ResultChan() {
		if event.Type == watch.Error && r.of.retryable(event.Object) {
			break
		}
		if received = true; !r.send(event) {
			return
		}
		r.of.broken.Store(0)
	}
	timer := time.NewTimer(minWatch - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.stop:
	}
	if !received {
		r.send(unchanged)
	}
}

// retryable reports whether another watch may succeed after one that ended with this
// status.
func (s *retryWatches) retryable(status runtime.Object) bool {
	err := apierrors.FromObject(status)
	return !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && s.broken.Add(1) <= maxBroken
}

func (r *retryWatch) send(event watch.Event) bool {
	select {
	case r.events <- event:
		return true
	case <-r.stop:
		return false
	}
}

// ResultChan implements watch.Interface.
func (r *retryWatch) ResultChan() <-chan watch.Event { return r.events }

// Stop implements watch.Interface.
func (r *retryWatch) Stop() {
	r.once.Do(func() { close(r.stop) })
	r.Interface.Stop()
}
