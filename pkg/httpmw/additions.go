package httpmw

import (
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/recent"
)

// addition is a person whom a caller adds.
type addition struct{ caller, person string }

// Additions limits the distinct people whom each caller adds to something, with the number per hour and
// bursts of an hour's worth. Zero means no limit. People whom the caller added lately are free. The func
// returns an error for a person who is one too many; it takes a request that Authenticate admitted.
func (l *Limits) Additions(limit string, perHour int) func(r *http.Request, person string) error {
	// The number of additions that are remembered is bounded like the number of callers.
	b, known := l.buckets(limit, float64(perHour)/3600), recent.New[addition, struct{}](maxLimited)
	b.burst = perHour
	return func(r *http.Request, person string) error {
		added := addition{CallerOf(r).Key(), person}
		if _, ok := known.Get(added); ok {
			return nil
		}
		if err := b.take(added.caller); err != nil {
			return err
		}
		known.Put(added, struct{}{})
		return nil
	}
}
