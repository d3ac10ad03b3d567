package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// await waits until n writers wait for the object or have the turn.
func (t *turns) await(test testing.TB, n int) {
	require.Eventually(test, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		mine := t.queue["a"]
		return mine == nil && n == 0 || mine != nil && mine.waiting == n
	}, time.Minute, time.Millisecond)
}

func TestTurns_areTakenInSequence(t *testing.T) {
	t.Parallel()
	var queue turns
	first, done, err := queue.take(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, first, "what the first one knows is not old")
	var mu sync.Mutex
	var all sync.WaitGroup
	busy, old := 0, 0
	for i := range 16 {
		all.Go(func() {
			first, done, err := queue.take(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			if busy++; busy > 1 {
				t.Error("two at once")
			}
			if !first {
				old++
			}
			mu.Unlock()
			mu.Lock()
			busy--
			mu.Unlock()
			done()
		})
		queue.await(t, i+2)
	}
	another, alsoDone, err := queue.take(t.Context(), "b")
	require.NoError(t, err, "another object is another queue")
	require.True(t, another)
	alsoDone()
	done()
	all.Wait()
	require.Equal(t, 16, old, "who waited reads again")
	require.Empty(t, queue.queue, "nobody leaves anything behind")

	first, done, err = queue.take(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, first)
	done()
}

func TestTurns_survivesACancelledWaiter(t *testing.T) {
	t.Parallel()
	var queue turns
	_, done, err := queue.take(t.Context(), "a")
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, _, err := queue.take(ctx, "a")
		gone <- err
	}()
	queue.await(t, 2)
	had := make(chan bool, 1)
	go func() {
		first, done, err := queue.take(t.Context(), "a")
		if err == nil {
			done()
		}
		had <- err == nil && !first
	}()
	queue.await(t, 3)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	queue.await(t, 2)
	done()
	require.True(t, <-had)
	queue.await(t, 0)
}

func TestTurns_leaveNothingBehind(t *testing.T) {
	t.Parallel()
	var queue turns
	ended, end := context.WithCancel(t.Context())
	end()
	_, done, err := queue.take(t.Context(), "a")
	require.NoError(t, err)
	for range 100 {
		_, _, err := queue.take(ended, "a")
		require.ErrorIs(t, err, context.Canceled)
	}
	done()
	require.Empty(t, queue.queue)
}
