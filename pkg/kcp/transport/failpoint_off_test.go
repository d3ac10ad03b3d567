//go:build !failpoints

package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The control is TestFailPoint_killsTheProcessAtEachWrite, with the build tag failpoints.
func TestFailPoint_isNotInAProgramWithoutTheTag(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"r1 1 before", "r1 1 after", "r1 0 never"} {
		came, known, logged, killed := run(t, point)
		require.False(t, killed)
		require.Equal(t, len(steps), came)
		require.Equal(t, len(steps), known)
		require.Empty(t, logged)
	}
}
