package httpmw

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestSlots_keepNothingOfCallersWithoutRequests(t *testing.T) {
	t.Parallel()
	s := &slots{most: 2, refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"}), of: map[string]*callerSlots{}}
	var running sync.WaitGroup
	for i := range 64 {
		running.Go(func() {
			for n := range 50 {
				// Some leave while they wait, and some are refused.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%3)*10*time.Microsecond)
				if leave, _, err := s.enter(ctx, strconv.Itoa((i+n)%5)); err == nil {
					leave()
				}
				cancel()
			}
		})
	}
	running.Wait()
	require.Empty(t, s.of)
}
