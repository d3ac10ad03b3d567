package session

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
)

// metrics counts the logins and the requests for newer ID tokens.
type metrics struct {
	logins, renewals *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		logins:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_session_logins_total", Help: "Sessions that were created, by client."}, []string{"client"}),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kedge_session_renewals_total", Help: "Requests to the identity provider for a newer ID token of a session, by result."}, []string{"result"}),
	}
	for _, client := range []v1alpha1.SessionClient{v1alpha1.SessionCLI, v1alpha1.SessionPortal} {
		m.logins.WithLabelValues(string(client))
	}
	for _, result := range []string{"ok", "refused", "error"} {
		m.renewals.WithLabelValues(result)
	}
	return m, errors.Join(r.Register(m.logins), r.Register(m.renewals))
}

// renewed counts an answer of the identity provider.
func (m *metrics) renewed(err error) {
	result := "error"
	switch {
	case err == nil:
		result = "ok"
	case errors.Is(err, auth.ErrGrantRefused):
		result = "refused"
	}
	m.renewals.WithLabelValues(result).Inc()
}
