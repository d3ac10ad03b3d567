package invitations

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/pkg/api/internal/counter"
)

// NewCount registers kedge_invitations_total and returns what counts an event in it.
func NewCount(r prometheus.Registerer) (count func(event string), err error) {
	return counter.New(r, "invitations", prometheus.CounterOpts{
		Name: "kedge_invitations_total",
		Help: "Invitations that were made, accepted, declined or revoked on this replica, by what happened.",
	}, "made", "accepted", "declined", "revoked")
}
