package meter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer that is larger than what is known is the weight of a Workspace until the next measurement.
func TestMeter_aLargeAnswerWeighsUntilTheNextMeasurement(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	w := workspace("a", "c0")
	weight := func() int64 {
		_, bytes, known := p.Weigh(w)
		require.True(t, known)
		return bytes
	}
	require.EqualValues(t, 10, weight())
	p.Larger(w, 9)
	require.EqualValues(t, 10, weight(), "less than is known is nothing new")
	p.Larger(w, 5*mib)
	p.Larger(w, 4*mib)
	require.EqualValues(t, 5*mib, weight())
	use, _, known := p.Read(w)
	require.True(t, known)
	require.EqualValues(t, 10, use.Bytes, "the limits count what was measured")
	p.clock.Step(time.Minute)
	require.Eventually(t, func() bool { return weight() == 10 }, 5*time.Second, time.Millisecond)
}
