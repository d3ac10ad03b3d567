package spare

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The kinds and the states of spares in metrics.
const (
	kindOrganization = "organization"
	kindWorkspace    = "workspace"

	stateReady    = "ready"
	stateMaking   = "making"
	stateReserved = "reserved"
	stateRemoving = "removing"
)

// Metrics are those of spares.
type Metrics struct {
	held      *prometheus.Desc
	taken     *prometheus.CounterVec
	discarded *prometheus.CounterVec
	orgs      string
	views     Held
}

// Held are the spares in the caches.
type Held interface {
	SparesIn(cluster string) []tenancy.Spare
	SpareParents() []string
}

// NewMetrics registers the metrics of the spares in v. orgs is the logical cluster of the workspaces
// of Organizations.
func NewMetrics(r prometheus.Registerer, v Held, orgs string) (*Metrics, error) {
	m := &Metrics{
		held:      prometheus.NewDesc("kedge_spares", "Workspaces that nobody owns, by what they are for and state.", []string{"kind", "state"}, nil),
		taken:     counter("kedge_spares_taken_total", "Spares that creates took, by what they are for.", "kind"),
		discarded: counter("kedge_spares_discarded_total", "Spares that were thrown away, by reason.", "reason"),
		orgs:      orgs, views: v,
	}
	for _, reason := range []string{reasonAbandoned, reasonOutdated, reasonIncomplete, reasonSurplus} {
		m.discarded.WithLabelValues(reason)
	}
	for _, kind := range []string{kindOrganization, kindWorkspace} {
		m.taken.WithLabelValues(kind)
	}
	return m, errors.Join(r.Register(m.taken), r.Register(m.discarded), r.Register(m))
}

func counter(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

// kindIn returns what spares in a logical cluster are for.
func (m *Metrics) kindIn(cluster string) string {
	if cluster == m.orgs {
		return kindOrganization
	}
	return kindWorkspace
}

func (m *Metrics) take(cluster string) { m.taken.WithLabelValues(m.kindIn(cluster)).Inc() }

func (m *Metrics) discard(reason string) { m.discarded.WithLabelValues(reason).Inc() }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- m.held }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	count := map[[2]string]int{}
	for _, parent := range m.views.SpareParents() {
		kind := m.kindIn(parent)
		for _, s := range m.views.SparesIn(parent) {
			count[[2]string{kind, stateOf(s)}]++
		}
	}
	for _, kind := range []string{kindOrganization, kindWorkspace} {
		for _, state := range []string{stateReady, stateMaking, stateReserved, stateRemoving} {
			to <- prometheus.MustNewConstMetric(m.held, prometheus.GaugeValue, float64(count[[2]string{kind, state}]), kind, state)
		}
	}
}

func stateOf(s tenancy.Spare) string {
	switch {
	case s.Terminating:
		return stateRemoving
	case s.Reserved != nil:
		return stateReserved
	case !s.Whole:
		return stateMaking
	}
	return stateReady
}
