package invitations

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Metrics count Invitations.
type Metrics struct{ counted *prometheus.CounterVec }

// NewMetrics registers the metric.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_invitations_total", Help: "Invitations that were made, accepted, declined or revoked on this replica, by what happened.",
	}, []string{"event"})}
	for _, event := range []string{"made", "accepted", "declined", "revoked"} {
		m.counted.WithLabelValues(event)
	}
	if err := registry.Register(m.counted); err != nil {
		return nil, fmt.Errorf("register the metric of invitations: %w", err)
	}
	return m, nil
}

func (m *Metrics) made() { m.counted.WithLabelValues("made").Inc() }

func (m *Metrics) answered(state v1alpha1.InvitationState) {
	m.counted.WithLabelValues(strings.ToLower(string(state))).Inc()
}
