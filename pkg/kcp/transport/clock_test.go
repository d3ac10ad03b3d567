package transport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// exact is how well both times are known: a Date is in whole seconds.
const exact = 3 * time.Second

// told is an answer of a kcp whose clock is ahead of the hub's, and how far the hub's two
// times are then ahead of its own clock. The Date is the time half-way between request and
// answer.
type told struct{ ahead, took, now, latest time.Duration }

func TestClock_neverEndsAGracePeriodEarly(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const (
		m    = 10 * time.Minute
		slow = 20 * time.Second
		off  = slow / 2
	)
	for name, answers := range map[string][]told{
		"the same":                          {{0, 0, 0, 0}, {0, 0, 0, 0}},
		"a little off":                      {{2 * time.Second, 0, 0, 0}, {2 * time.Second, 0, 0, 0}},
		"the hub is behind":                 {{m, 0, m, m}, {m, 0, m, m}},
		"the hub is ahead":                  {{-m, 0, -m, -m}, {-m, 0, -m, -m}},
		"kcp's is set forward":              {{0, 0, 0, 0}, {m, 0, 0, m}},
		"kcp's is set back":                 {{0, 0, 0, 0}, {-m, 0, -m, 0}},
		"kcp's is right and set off":        {{m, 0, m, m}, {0, 0, 0, m}},
		"the hub is behind, kcp slow":       {{m, slow, m - off, m + off}, {m, slow, m - off, m + off}},
		"the hub is ahead, kcp slow":        {{-m, slow, -m - off, -m + off}, {-m, slow, -m - off, -m + off}},
		"kcp is a little slow":              {{0, 4 * time.Second, 0, 0}, {0, 4 * time.Second, 0, 0}},
		"kcp is slow at first":              {{-m, slow, -m - off, -m + off}, {-m, 0, -m, -m}, {-m, 0, -m, -m}},
		"kcp gets slow":                     {{-m, 0, -m, -m}, {-m, slow, -m, -m}},
		"kcp gets slower":                   {{0, slow, -off, off}, {0, 2 * slow, -slow, slow}, {0, slow, -slow, slow}},
		"set forward while slow":            {{0, slow, -off, off}, {m, slow, -off, m + off}, {m, 0, -off, m + off}},
		"set back while slow":               {{0, slow, -off, off}, {-m, slow, -m - off, off}, {-m, 0, -m - off, off}},
		"set forward when slow":             {{0, 0, 0, 0}, {m, slow, 0, m + off}, {m, 0, 0, m + off}},
		"set back when slow":                {{0, 0, 0, 0}, {-m, slow, -m - off, 0}, {-m, 0, -m - off, 0}},
		"slow, and set before it is prompt": {{0, slow, -off, off}, {m, 0, -off, m}, {m, 0, -off, m}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := clocktesting.NewFakeClock(start)
			var is told
			f := newKCP(t, true, nil, nil)
			serve := f.Config.Handler
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				local.Step(is.took / 2)
				w.Header().Set("Date", local.Now().Add(is.ahead).Format(http.TimeFormat))
				serve.ServeHTTP(w, r)
				local.Step(is.took / 2)
			})
			clients := f.clients(t)
			clock := clients.Transport().Clock(local)
			require.Equal(t, start, clock.Now(), "nothing is known yet")
			least, most := answers[0].ahead, answers[0].ahead
			for _, is = range answers {
				_, err := clients.Users("c").Get(t.Context(), "u", metav1.GetOptions{})
				require.NoError(t, err)
				least, most = min(least, is.ahead), max(most, is.ahead)
				for range 2 {
					require.WithinDuration(t, local.Now().Add(is.now), clock.Now(), exact)
					require.False(t, clock.Now().After(local.Now().Add(least)), "never early")
					require.WithinDuration(t, local.Now().Add(is.latest), clock.Latest().Now(), exact)
					require.False(t, clock.Latest().Now().Before(local.Now().Add(min(most, is.latest))), "a grace never begins early")
					local.Step(time.Hour)
				}
			}
			require.Equal(t, clock.Now().Sub(start), clock.Since(start))
			require.Equal(t, clock.Latest().Now().Sub(start), clock.Latest().Since(start))
		})
	}
}

// Rights end by this clock. A process that was suspended, or whose kcp has another time now, knows it
// with the next answer, and never takes the time for later than it is.
func TestClock_currentFollowsTheLatestAnswer(t *testing.T) {
	t.Parallel()
	local := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var ahead time.Duration
	f := newKCP(t, true, nil, nil)
	serve := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", local.Now().Add(ahead).UTC().Format(http.TimeFormat))
		serve.ServeHTTP(w, r)
	})
	clients := f.clients(t)
	clock := transport.Current(clients.Transport().Clock(local))
	for _, ahead = range []time.Duration{3 * time.Second, 10 * time.Minute, -10 * time.Minute, 0, 1500 * time.Millisecond} {
		for tenth := range 10 {
			_, err := clients.Users("c").Get(t.Context(), "u", metav1.GetOptions{})
			require.NoError(t, err)
			is := local.Now().Add(ahead)
			require.False(t, clock.Now().After(is), "never early")
			tolerated := time.Second
			if tenth == 9 {
				// Answers in other parts of a second say more.
				tolerated = 200 * time.Millisecond
			}
			require.WithinDuration(t, is, clock.Now(), tolerated)
			local.Step(time.Minute + 100*time.Millisecond)
		}
	}
	require.Equal(t, clock.Now().Sub(time.Unix(0, 0)), clock.Since(time.Unix(0, 0)))
	plain := clocktesting.NewFakeClock(local.Now())
	require.Equal(t, plain.Now(), transport.Current(plain).Now())
}
