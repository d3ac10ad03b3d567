package requests

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Metrics count AccessRequests.
type Metrics struct{ counted *prometheus.CounterVec }

// NewMetrics registers the metric.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_access_requests_total", Help: "Requests for rights that were made, approved, denied, withdrawn or ended early on this replica, by what happened.",
	}, []string{"event"})}
	for _, event := range []string{"made", "approved", "denied", "withdrawn", "ended"} {
		m.counted.WithLabelValues(event)
	}
	if err := registry.Register(m.counted); err != nil {
		return nil, fmt.Errorf("register the metric of requests: %w", err)
	}
	return m, nil
}

func (m *Metrics) made() { m.counted.WithLabelValues("made").Inc() }

func (m *Metrics) decided(state v1alpha1.AccessRequestState) {
	m.counted.WithLabelValues(strings.ToLower(string(state))).Inc()
}
