package login

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts logins by their results.
type Metrics struct{ logins *prometheus.CounterVec }

// The results of a login in kedge_logins_total.
const (
	resultOK      = "ok"
	resultRefused = "refused"
	resultError   = "error"
)

// NewMetrics registers kedge_logins_total.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{logins: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_logins_total", Help: "Logins that ended, by client and by result: ok, refused or error.",
	}, []string{"client", "result"})}
	for _, client := range actions() {
		for _, result := range []string{resultOK, resultRefused, resultError} {
			m.logins.WithLabelValues(client, result)
		}
	}
	return m, r.Register(m.logins)
}

// actions returns the clients of the actions that end a login. A device has its login when the
// person confirms it.
func actions() map[string]string {
	return map[string]string{
		"login cli": "cli", "login portal": "portal", "login device": "device", "confirm device": "device", "deny device": "device",
	}
}

// record counts an action with an HTTP status if it is the end of a login.
func (m *Metrics) record(action string, code int) {
	client, ok := actions()[action]
	if m == nil || !ok {
		return
	}
	result := resultOK
	switch {
	case code >= http.StatusInternalServerError:
		result = resultError
	case code >= http.StatusBadRequest || action == "deny device":
		result = resultRefused
	}
	m.logins.WithLabelValues(client, result).Inc()
}
