package httpmw

import (
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/inflight"
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
	refused := l.refused.WithLabelValues(limit)
	s := &inflight.Rooms{Most: int64(most), Pieces: most * (1 + waitersPerSlot), Wait: slotWait}
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
			leave, waited, err := s.Enter(r.Context(), caller.Key(), "", 1)
			if err != nil {
				refused.Inc()
				return tooManyInFlight()
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

func tooManyInFlight() error {
	return errs.New(errs.TooManyRequests, "too many of your requests are in progress; wait until one ends").After(slotRetryAfter)
}
