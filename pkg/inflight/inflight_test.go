package inflight_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/inflight"
)

func TestRooms_boundEachKeyByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &inflight.Rooms{Most: 4, Pieces: 3, Wait: time.Second}
		heavy, waited, err := s.Enter(t.Context(), "a", "owner", 3)
		require.NoError(t, err)
		require.False(t, waited)
		other, waited, err := s.Enter(t.Context(), "b", "owner", 100)
		require.NoError(t, err, "a heavier piece counts as all of the key's room")
		require.False(t, waited)
		other()
		light, _, err := s.Enter(t.Context(), "a", "owner", 1)
		require.NoError(t, err)

		// The third waits, and a fourth may not.
		entered := make(chan func())
		go func() {
			leave, waited, err := s.Enter(t.Context(), "a", "owner", 2)
			if err == nil && waited {
				entered <- leave
			}
			close(entered)
		}()
		synctest.Wait()
		_, waited, err = s.Enter(t.Context(), "a", "owner", 1)
		require.ErrorIs(t, err, inflight.ErrFull)
		require.False(t, waited)
		heavy()
		leave, ok := <-entered
		require.True(t, ok)

		// Work that waits too long, or whose client leaves, gets no room.
		_, waited, err = s.Enter(t.Context(), "a", "owner", 4)
		require.ErrorIs(t, err, inflight.ErrFull)
		require.True(t, waited)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = s.Enter(gone, "a", "owner", 4)
		require.ErrorIs(t, err, inflight.ErrFull)
		leave()
		light()
	})
}

// entrance is a room with work that waits for it, in the order of the words.
type entrance struct {
	room  *inflight.Room
	mu    sync.Mutex
	order []string
	leave map[string]func()
}

func (e *entrance) wait(ctx context.Context, words string) {
	for word := range strings.FieldsSeq(words) {
		go func() {
			weight, _ := strconv.ParseInt(word[1:], 10, 64)
			leave, _, err := e.room.Enter(ctx, word[:1], weight)
			e.mu.Lock()
			defer e.mu.Unlock()
			if err != nil {
				e.order = append(e.order, word+"!")
				return
			}
			e.order = append(e.order, word)
			e.leave[word] = leave
		}()
		synctest.Wait()
	}
}

func (e *entrance) seen() string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { e.order = nil }()
	return strings.Join(e.order, " ")
}

func TestRoom_ownersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &entrance{room: &inflight.Room{Most: 10, Wait: time.Minute}, leave: map[string]func(){}}
		e.wait(t.Context(), "a10 a3 a4 a5 a6 b2 c1")
		require.Equal(t, "a10", e.seen())
		require.EqualValues(t, 10, e.room.Used())
		e.leave["a10"]()
		// One of each owner, and then the second of the first one, which fits.
		require.Equal(t, map[string]bool{"a3": true, "b2": true, "c1": true, "a4": true}, set(e.seen()))
		require.EqualValues(t, 10, e.room.Used())
		// Light work does not overtake what waits for its turn.
		e.wait(t.Context(), "d1")
		e.leave["c1"]()
		require.Empty(t, e.seen())
		e.leave["a4"]()
		require.Equal(t, map[string]bool{"a5": true}, set(e.seen()))
		e.leave["a5"]()
		require.Empty(t, e.seen(), "a6 came before d1")
		e.leave["a3"]()
		require.Equal(t, map[string]bool{"a6": true, "d1": true}, set(e.seen()))
		for _, word := range []string{"a6", "b2", "d1"} {
			e.leave[word]()
		}
		require.Zero(t, e.room.Used())
	})
}

// The attack: fill the room, and have the next pieces wait for all that becomes free.
func TestRoom_keepsAReserveForOwnersWithLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &entrance{room: &inflight.Room{Most: 8, Reserve: 2, Little: 1, Wait: time.Minute}, leave: map[string]func(){}}
		e.wait(t.Context(), "a3 a2 a1 a1 b1 b1 c1 d1 d1")
		require.Equal(t, map[string]bool{"a3": true, "a2": true, "a1": true, "a1!": true, "b1": true, "b1!": true, "c1": true, "d1!": true}, set(e.seen()),
			"one piece of d waits, and no other one may")
		e.leave["a2"]()
		require.Equal(t, "d1", e.seen())
		e.wait(t.Context(), "a1")
		require.Equal(t, "a1!", e.seen(), "the reserve is not free yet")
		e.leave["b1"]()
		e.leave["c1"]()
		e.wait(t.Context(), "a1")
		require.Equal(t, "a1", e.seen())
	})
}

func TestRoom_whoLeavesMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &entrance{room: &inflight.Room{Most: 10, Wait: time.Minute}, leave: map[string]func(){}}
		e.wait(t.Context(), "a6")
		gone, cancel := context.WithCancel(t.Context())
		e.wait(gone, "b9")
		e.wait(t.Context(), "c4")
		require.Equal(t, "a6", e.seen())
		cancel()
		require.Equal(t, map[string]bool{"b9!": true, "c4": true}, set(e.seen()))
		// Nobody waits longer than a minute.
		began := time.Now()
		_, waited, err := e.room.Enter(t.Context(), "d", 1)
		require.ErrorIs(t, err, inflight.ErrFull)
		require.True(t, waited)
		require.Equal(t, time.Minute, time.Since(began))
		e.leave["a6"]()
		e.leave["c4"]()
		require.Zero(t, e.room.Used())
	})
}

func set(words string) map[string]bool {
	found := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		found[word] = true
	}
	return found
}

// Whatever enters, waits and leaves, the bound holds and nothing is left behind.
func TestBounds_holdUnderLoad(t *testing.T) {
	t.Parallel()
	s, r := &inflight.Rooms{Most: 7, Pieces: 20, Wait: time.Millisecond}, &inflight.Room{Most: 16, Wait: time.Millisecond}
	var running sync.WaitGroup
	for i := range 32 {
		running.Go(func() {
			for n := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%3)*10*time.Microsecond)
				key, weight := strconv.Itoa((i+n)%5), rand.Int64N(9)
				if quit, _, err := s.Enter(ctx, key, "owner", weight); err == nil {
					if leave, _, err := r.Enter(ctx, key, weight); err == nil {
						leave()
					}
					quit()
				}
				cancel()
			}
		})
	}
	running.Wait()
	require.Zero(t, r.Used())
	require.Zero(t, s.Keys())
}
