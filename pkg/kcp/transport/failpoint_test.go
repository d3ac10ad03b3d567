//go:build failpoints

package transport_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFailPoint_killsTheProcessAtEachWrite(t *testing.T) {
	t.Parallel()
	for n := 1; n <= len(steps); n++ {
		for when, sent := range map[string]int{"before": n - 1, "after": n} {
			t.Run(fmt.Sprintf("%s %d", when, n), func(t *testing.T) {
				t.Parallel()
				came, known, logged, killed := run(t, fmt.Sprintf("r%d %d %s", n, n, when))
				require.True(t, killed)
				require.Equal(t, sent, came)
				require.Equal(t, n-1, known, "the caller does not see the answer")
				require.Equal(t, lines(fmt.Sprintf("r%d", n), sent), logged)
			})
		}
	}
}

func TestFailPoint_absentKillsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		point  string
		logged []string
	}{
		"the variable is not set":       {"-", nil},
		"there is no file":              {"", nil},
		"the file makes no sense":       {"half", nil},
		"none is chosen":                {"r 0 before", lines("r", len(steps))},
		"one that is never reached":     {"r 99 after", lines("r", len(steps))},
		"neither before nor after":      {"r 1 while", lines("r", len(steps))},
		"a number that is not a number": {"r x before", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came, known, logged, killed := run(t, c.point)
			require.False(t, killed)
			require.Equal(t, len(steps), came)
			require.Equal(t, len(steps), known)
			require.Equal(t, c.logged, logged)
		})
	}
}

func lines(run string, n int) []string {
	var out []string
	for i, step := range steps[:n] {
		out = append(out, fmt.Sprintf("%s %d %s", run, i+1, step))
	}
	return out
}
