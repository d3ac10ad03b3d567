package keylock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/keylock"
)

func TestLocks_areTakenInSequence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := keylock.New()
		unlock, waited, err := locks.Lock(t.Context(), "a")
		require.NoError(t, err)
		require.False(t, waited)
		var order []int
		for i := range 16 {
			go func() {
				unlock, waited, err := locks.Lock(t.Context(), "a")
				if err != nil || !waited {
					t.Errorf("waited %v: %v", waited, err)
					return
				}
				order = append(order, i)
				unlock()
			}()
			synctest.Wait()
		}
		require.Empty(t, order)
		unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, order)
		unlock, waited, err = locks.Lock(t.Context(), "a")
		require.NoError(t, err)
		require.False(t, waited, "nobody has it any more")
		unlock()
	})
}

func TestLocks_areIndependent(t *testing.T) {
	t.Parallel()
	locks, free := keylock.New(), 0
	unlock, _, err := locks.Lock(t.Context(), "a")
	require.NoError(t, err)
	defer unlock()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, key := range []string{"b", "c", "d", "e", "f", "g"} {
		// A few keys may share the lock of "a".
		if unlock, _, err := locks.Lock(ended, key); err == nil {
			free++
			unlock()
		}
	}
	require.Positive(t, free)
}

func TestLocks_surviveACancelledWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := keylock.New()
		unlock, _, err := locks.Lock(t.Context(), "a")
		require.NoError(t, err)
		ctx, leave := context.WithCancel(t.Context())
		var left error
		go func() { _, _, left = locks.Lock(ctx, "a") }()
		synctest.Wait()
		locked := false
		go func() {
			unlock, waited, err := locks.Lock(t.Context(), "a")
			if locked = err == nil && waited; locked {
				unlock()
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		require.ErrorIs(t, left, context.Canceled)
		require.False(t, locked)
		unlock()
		synctest.Wait()
		require.True(t, locked)
	})
}
