package recent_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/recent"
)

func TestCache_forgetsWhatWasUsedLeastRecently(t *testing.T) {
	t.Parallel()
	uses := map[string]func(c *recent.Cache[string, int]){
		"get":    func(c *recent.Cache[string, int]) { c.Get("used") },
		"put":    func(c *recent.Cache[string, int]) { c.Put("used", 1) },
		"change": func(c *recent.Cache[string, int]) { c.Change("used", func(n int) int { return n }) },
	}
	for name, use := range uses {
		c := recent.New[string, int](2)
		c.Put("used", 1)
		c.Put("forgotten", 1)
		use(c)
		c.Put("new", 1)
		held, ok := c.Get("used")
		require.True(t, ok, name)
		require.Equal(t, 1, held, name)
		held, ok = c.Get("forgotten")
		require.False(t, ok, name)
		require.Zero(t, held, name)
	}
}

// A value may be nil, and is there nevertheless.
func TestCache_holdsNil(t *testing.T) {
	t.Parallel()
	c := recent.New[string, error](1)
	c.Put("a", nil)
	held, ok := c.Get("a")
	require.True(t, ok)
	require.NoError(t, held)
}

// Two requests that come at the same time are not both the first, and no change of either is lost.
func TestCache_makesAndChangesOnce(t *testing.T) {
	t.Parallel()
	c := recent.New[string, int](1)
	const callers = 50
	got := make([]int, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { got[i] = c.Change("a", func(n int) int { return n + 1 }) })
	}
	running.Wait()
	slices.Sort(got)
	for i, n := range got {
		require.Equal(t, i+1, n)
	}
}
