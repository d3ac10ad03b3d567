package requests

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/api/internal/counter"
)

// NewCount registers kedge_access_requests_total and returns what counts an event in it.
func NewCount(r prometheus.Registerer) (count func(event string), err error) {
	return counter.New(r, "requests", prometheus.CounterOpts{
		Name: "kedge_access_requests_total",
		Help: "Requests for rights that were made, approved, denied, withdrawn or ended early on this replica, by what happened.",
	}, "made", "approved", "denied", "withdrawn", "ended")
}
