package httpmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// slow is a handler that serves until it is released.
type slow struct {
	mu       sync.Mutex
	serving  map[string]int
	released chan struct{}
}

func newSlow() *slow { return &slow{serving: map[string]int{}, released: make(chan struct{})} }

func (s *slow) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.count(r, 1)
	<-s.released
	s.count(r, -1)
}

func (s *slow) count(r *http.Request, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving[httpmw.CallerOf(r).Key()] += n
}

// answers are the answers to parallel requests.
type answers struct {
	running sync.WaitGroup
	mu      sync.Mutex
	codes   map[int]int
	last    http.Header
}

func (a *answers) send(h http.Handler, n int, method, path, caller string) {
	for range n {
		a.running.Go(func() {
			w := send(h, method, path, as(caller))
			a.mu.Lock()
			defer a.mu.Unlock()
			a.codes[w.Code]++
			a.last = w.Header()
		})
	}
	synctest.Wait()
}

func newAnswers() *answers { return &answers{codes: map[int]int{}} }

func TestInFlight_boundsTheRequestsOfACaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits, _, registry := newLimits(t)
		s := newSlow()
		h := routes(func(r chi.Router) {
			r.Use(limits.InFlight("test", 4, func(r *http.Request) bool { return r.URL.Path != "/free" }))
			r.Handle("/slow", s)
			r.Get("/free", ok)
		})
		a, neighbour := newAnswers(), newAnswers()
		a.send(h, 100, http.MethodGet, "/slow", "mallory")
		require.Equal(t, 4, s.serving["mallory"])
		require.Equal(t, map[int]int{http.StatusTooManyRequests: 100 - 4 - 32}, a.codes, "32 wait")
		require.Equal(t, "1", a.last.Get("Retry-After"))
		requireRefused(t, registry, "test", 64)

		neighbour.send(h, 4, http.MethodGet, "/slow", "alice")
		require.Equal(t, 4, s.serving["alice"])
		require.Equal(t, http.StatusOK, get(h, "/free", as("mallory")).Code)
		close(s.released)
		a.running.Wait()
		neighbour.running.Wait()
		require.Equal(t, 36, a.codes[http.StatusOK])
		require.Equal(t, map[int]int{http.StatusOK: 4}, neighbour.codes)
	})
}

func TestInFlight_refusesARequestThatWaitsTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits, _, registry := newLimits(t)
		s := newSlow()
		h := routes(func(r chi.Router) { r.With(limits.WritesInFlight("test", 1)).Handle("/slow", s) })
		a := newAnswers()
		a.send(h, 2, http.MethodPost, "/slow", "alice")
		require.Equal(t, 1, s.serving["alice"])
		<-time.After(31 * time.Second)
		synctest.Wait()
		require.Equal(t, map[int]int{http.StatusTooManyRequests: 1}, a.codes)
		requireRefused(t, registry, "test", 1)
		// Requests that only read have no slot.
		reads := newAnswers()
		reads.send(h, 10, http.MethodGet, "/slow", "alice")
		require.Equal(t, 11, s.serving["alice"])
		close(s.released)
		a.running.Wait()
		reads.running.Wait()
		require.Equal(t, http.StatusOK, send(h, http.MethodPost, "/slow", as("alice")).Code)
	})
}

// A client that leaves at once would otherwise pile up writes that go on without it.
func TestInFlight_aDetachedWriteKeepsItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits, _, _ := newLimits(t)
		s := newSlow()
		h := routes(func(r chi.Router) { r.With(limits.WritesInFlight("test", 2)).Handle("/slow", s) })
		var running sync.WaitGroup
		for range 50 {
			ctx, leave := context.WithCancel(t.Context())
			running.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodDelete, "/slow", http.NoBody)
				r.Header = as("mallory")
				h.ServeHTTP(httptest.NewRecorder(), r)
			})
			synctest.Wait()
			leave()
			synctest.Wait()
		}
		require.Equal(t, 2, s.serving["mallory"])
		close(s.released)
		running.Wait()
	})
}

func TestInFlight_judgesAWaitingRequestAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits, _, _ := newLimits(t)
		s := newSlow()
		known := true
		a := authentication(authenticator(func(token string) (*auth.Identity, bool, error) {
			return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, true, nil
		}), everybody{}, func(context.Context, *auth.Identity, bool) (*v1alpha1.User, error) { return nil, nil })
		a.Known = func(*auth.Identity) bool { return known }
		h := chi.NewRouter()
		h.Use(httpmw.Authenticate(a))
		h.With(limits.WritesInFlight("test", 1)).Handle("/slow", s)
		got := newAnswers()
		got.send(h, 2, http.MethodDelete, "/slow", "mallory")
		known = false
		close(s.released)
		got.running.Wait()
		require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusUnauthorized: 1}, got.codes)
	})
}
