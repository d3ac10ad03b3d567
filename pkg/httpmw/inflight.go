package httpmw

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

const (
	// waitersPerSlot is the number of requests of a caller that wait for a slot, for each slot.
	// kubectl sends a request for each group of APIs at the same time, and a script may create
	// many objects in parallel.
	waitersPerSlot = 8
	// slotWait limits the time that a request waits for a slot. A write ends within that time.
	slotWait = 30 * time.Second
	// slotRetryAfter is the Retry-After of a request that gets no slot.
	slotRetryAfter = time.Second
)

// InFlight limits the requests of each caller that are served at the same time. A further request
// waits for a slot in turn; if too many wait, or if it waits too long, it is answered 429 with
// Retry-After. Requests that counted excludes pass. Zero means no limit. It runs after Authenticate and
// before the body is read: a client that sends or reads slowly uses up its own slots only. A handler
// that goes on after its client has left keeps its slot until it returns.
func (l *Limits) InFlight(limit string, most int, counted func(*http.Request) bool) func(http.Handler) http.Handler {
	s := &slots{most: most, refused: l.refused.WithLabelValues(limit), of: map[string]*callerSlots{}}
	return func(next http.Handler) http.Handler {
		if most == 0 {
			return next
		}
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if !counted(r) {
				next.ServeHTTP(w, r)
				return nil
			}
			caller := CallerOf(r)
			leave, waited, err := s.enter(r.Context(), caller.Key())
			if err != nil {
				return err
			}
			defer leave()
			if waited {
				if err := caller.Valid(); err != nil {
					return err
				}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// WritesInFlight is InFlight for the requests that may write.
func (l *Limits) WritesInFlight(limit string, most int) func(http.Handler) http.Handler {
	return l.InFlight(limit, most, MayWrite)
}

// slots are the slots of all callers that have a request.
type slots struct {
	most    int
	refused prometheus.Counter

	mu sync.Mutex
	of map[string]*callerSlots
}

// callerSlots are the slots of one caller. requests is the number of requests that have a slot or wait
// for one; slots.mu guards it.
type callerSlots struct {
	free     *semaphore.Weighted
	requests int
}

// enter takes a slot of a caller. waited is true if none was free.
func (s *slots) enter(ctx context.Context, caller string) (leave func(), waited bool, err error) {
	of, ok := s.join(caller)
	if !ok {
		return nil, false, s.refuse()
	}
	if waited = !of.free.TryAcquire(1); waited {
		wait, cancel := context.WithTimeout(ctx, slotWait)
		defer cancel()
		if of.free.Acquire(wait, 1) != nil {
			s.quit(caller, of)
			return nil, true, s.refuse()
		}
	}
	return func() {
		of.free.Release(1)
		s.quit(caller, of)
	}, waited, nil
}

// join counts a request of a caller. ok is false if too many wait.
func (s *slots) join(caller string) (of *callerSlots, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of = s.of[caller]; of == nil {
		of = &callerSlots{free: semaphore.NewWeighted(int64(s.most))}
		s.of[caller] = of
	}
	if of.requests >= s.most*(1+waitersPerSlot) {
		return nil, false
	}
	of.requests++
	return of, true
}

func (s *slots) quit(caller string, of *callerSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.requests--; of.requests == 0 {
		delete(s.of, caller)
	}
}

// refuse counts a refusal and returns its error.
func (s *slots) refuse() error {
	s.refused.Inc()
	e := errs.New(errs.TooManyRequests, "too many of your requests are in progress; wait until one ends")
	e.RetryAfter = slotRetryAfter
	return e
}
