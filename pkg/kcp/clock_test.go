package kcp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// Both times are within this of kcp's, whose Date is in whole seconds.
const exact = 3 * time.Second

func TestAGraceNeverEndsEarlyWhateverAClockSays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const minutes = 10 * time.Minute
	for name, c := range map[string]struct {
		// ahead is kcp's clock before the hub's, at first and then.
		ahead, then         time.Duration
		wantNow, wantLatest time.Duration
		thenNow, thenLatest time.Duration
	}{
		"the same":                   {0, 0, 0, 0, 0, 0},
		"a little off":               {2 * time.Second, 2 * time.Second, 0, 0, 0, 0},
		"the hub is behind":          {minutes, minutes, minutes, minutes, minutes, minutes},
		"the hub is ahead":           {-minutes, -minutes, -minutes, -minutes, -minutes, -minutes},
		"kcp's is set forward":       {0, minutes, 0, 0, 0, minutes},
		"kcp's is set back":          {0, -minutes, 0, 0, -minutes, 0},
		"kcp's is right and set off": {minutes, 0, minutes, minutes, 0, minutes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := clocktesting.NewFakeClock(start)
			ahead := c.ahead
			f := newKCP(t, true, nil, nil)
			serve := f.Config.Handler
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", local.Now().Add(ahead).Format(http.TimeFormat))
				serve.ServeHTTP(w, r)
			})
			clients := f.clients(t)
			clock := clients.Clock(local)
			require.Equal(t, start, clock.Now(), "nothing is known yet")
			ask := func() {
				_, err := clients.Users("c").Get(t.Context(), "u", metav1.GetOptions{})
				require.NoError(t, err)
			}
			check := func(now, latest time.Duration) {
				t.Helper()
				require.WithinDuration(t, local.Now().Add(now), clock.Now(), exact)
				require.False(t, clock.Now().After(local.Now().Add(now)), "never early")
				require.WithinDuration(t, local.Now().Add(latest), clock.Latest().Now(), exact)
				require.False(t, clock.Latest().Now().Before(local.Now().Add(latest)), "a grace never begins early")
			}
			ask()
			check(c.wantNow, c.wantLatest)
			local.Step(time.Hour)
			check(c.wantNow, c.wantLatest)
			ahead = c.then
			ask()
			check(c.thenNow, c.thenLatest)
			require.Equal(t, clock.Now().Sub(start), clock.Since(start))
			require.Equal(t, clock.Latest().Now().Sub(start), clock.Latest().Since(start))
		})
	}
}

func TestAnAnswerThatTookLongTellsNoTime(t *testing.T) {
	t.Parallel()
	local := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	f := newKCP(t, true, nil, func(*http.Request) { <-time.After(1100 * time.Millisecond) })
	clients := f.clients(t)
	clock := clients.Clock(local)
	_, err := clients.Users("c").Get(t.Context(), "u", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, local.Now(), clock.Now())
}
