package framework

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Eventually waits until cond returns nil, and otherwise fails the test with the last
// error of cond.
func Eventually(t testing.TB, within time.Duration, cond func() error) {
	t.Helper()
	require.NoError(t, Wait(within, cond))
}

// Wait waits until cond returns nil, and otherwise returns its last error. Goroutines use
// it, because they must not end a test. The pauses grow from 10 ms to a twentieth of the limit, 300 ms at
// most: most conditions are requests, which take CPU time from the work that the test waits for.
func Wait(within time.Duration, cond func() error) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	longest := min(within/20, 300*time.Millisecond)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, longest) {
		err := cond()
		if err == nil {
			return nil
		}
		select {
		case <-deadline.C:
			return fmt.Errorf("still so after %s: %w", within, err)
		case <-time.After(pause):
		}
	}
}

// Equal is a condition for Eventually: the two numbers are equal.
func Equal(want, got int) error {
	if want != got {
		return fmt.Errorf("%d instead of %d", got, want)
	}
	return nil
}

// Check is a condition for Eventually: nil if ok, and the formatted error otherwise.
func Check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Cascades is the time limit for the removal of an object with all its children. kcp
// retries an unfinished deletion only after a delay of a fifth of the object's age.
const Cascades = 5 * time.Minute

// NowAndThen is Eventually with the time limit Cascades and two polls a second, for slow
// work with an expensive condition.
func NowAndThen(t testing.TB, cond func() error) {
	t.Helper()
	deadline, tick := time.After(Cascades), time.NewTicker(500*time.Millisecond)
	defer tick.Stop()
	for {
		err := cond()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			require.NoError(t, err)
		case <-tick.C:
		}
	}
}
