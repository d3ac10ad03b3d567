package keylock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	locks := keylock.New()
	unlock, _, err := locks.Lock(t.Context(), "held")
	require.NoError(t, err)
	defer unlock()
	for i := range 5000 {
		unlock, waited, err := locks.Lock(t.Context(), strconv.Itoa(i))
		require.NoError(t, err)
		require.False(t, waited, "no key shares the lock of another one")
		defer unlock()
	}
}

// waiting makes callers wait for one key, in the order of their names, and returns them in the order
// in which they get it. Names begin with the caller; those of endings are in upper case.
func waiting(t *testing.T, names ...string) (order []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		locks := keylock.New()
		release, _, err := locks.Lock(t.Context(), "org")
		require.NoError(t, err)
		for _, name := range names {
			ctx := keylock.WithCaller(t.Context(), strings.ToLower(name[:1]), strings.ToUpper(name) == name)
			go func() {
				unlock, _, err := locks.Lock(ctx, "org")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				unlock()
			}()
			synctest.Wait()
		}
		release()
		synctest.Wait()
	})
	return order
}

func TestLocks_letEndingsGoFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"A1", "m1", "b1", "m2", "m3"}, waiting(t, "m1", "m2", "m3", "b1", "A1"))
}

func TestLocks_aFloodOfEndingsDelaysNobodysEnding(t *testing.T) {
	t.Parallel()
	names := []string{}
	for range 100 {
		names = append(names, "M")
	}
	order := waiting(t, append(names, "A", "b")...)
	require.Equal(t, 1, slices.Index(order, "A"), "one ending of the flood is before it")
	require.Equal(t, 7, slices.Index(order, "b"), "nor does it starve what is no ending")
}

func TestLocks_aWaiterThatLeavesPassesTheLockOn(t *testing.T) {
	t.Parallel()
	locks := keylock.New()
	var inside atomic.Int32
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithTimeout(keylock.WithCaller(t.Context(), strconv.Itoa(i), n%2 == 0), time.Duration(n%5)*10*time.Microsecond)
				if unlock, _, err := locks.Lock(ctx, "key"); err == nil {
					if inside.Add(1) != 1 {
						t.Error("two hold the lock")
					}
					inside.Add(-1)
					unlock()
				}
				cancel()
			}
		})
	}
	running.Wait()
	unlock, waited, err := locks.Lock(t.Context(), "key")
	require.NoError(t, err)
	require.False(t, waited, "nobody has it any more")
	unlock()
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
