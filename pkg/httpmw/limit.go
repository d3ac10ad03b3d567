package httpmw

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// maxLimited is the number of Users whose rates are kept, least recently used first out.
const maxLimited = 10_000

// LimitRate limits each User to perSecond requests with bursts of burst. It answers 429 with
// Retry-After to more. It runs after Authenticate.
func LimitRate(perSecond float64, burst int, c clock.PassiveClock) func(http.Handler) http.Handler {
	var mu sync.Mutex
	limiters := lru.New(maxLimited)
	of := func(user string) *rate.Limiter {
		mu.Lock()
		defer mu.Unlock()
		if l, ok := limiters.Get(user); ok {
			return l.(*rate.Limiter)
		}
		l := rate.NewLimiter(rate.Limit(perSecond), burst)
		limiters.Add(user, l)
		return l
	}
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if !of(CallerOf(r).User.Name).AllowN(c.Now(), 1) {
				e := errs.New(errs.TooManyRequests, "too many requests of this kind; wait a moment and try again")
				e.RetryAfter = time.Duration(float64(time.Second) / perSecond)
				return e
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}
