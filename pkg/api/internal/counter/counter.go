// Package counter counts what happens to a kind of object, in one metric with the label event.
package counter

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// New registers a metric and returns what counts an event in it. The events that are named are shown before they happen.
// of is what an error names.
func New(r prometheus.Registerer, of string, opts prometheus.CounterOpts, events ...string) (count func(event string), err error) {
	counted := prometheus.NewCounterVec(opts, []string{"event"})
	for _, event := range events {
		counted.WithLabelValues(event)
	}
	if err := r.Register(counted); err != nil {
		return nil, fmt.Errorf("register the metric of %s: %w", of, err)
	}
	return func(event string) { counted.WithLabelValues(strings.ToLower(event)).Inc() }, nil
}
