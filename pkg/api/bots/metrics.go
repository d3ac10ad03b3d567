package bots

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the tokens that this hub has issued and revoked.
type Metrics struct {
	issued, revoked prometheus.Counter
	exchanges       *prometheus.CounterVec
}

// NewMetrics registers kedge_bot_tokens_issued_total, kedge_bot_tokens_revoked_total and
// kedge_ci_exchanges_total.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		issued:  prometheus.NewCounter(prometheus.CounterOpts{Name: "kedge_bot_tokens_issued_total", Help: "Tokens of bots that were issued."}),
		revoked: prometheus.NewCounter(prometheus.CounterOpts{Name: "kedge_bot_tokens_revoked_total", Help: "Tokens of bots that were revoked by a request."}),
		exchanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kedge_ci_exchanges_total", Help: "Genuine ID tokens of jobs that were presented for a token of a bot, by result: ok, refused or error.",
		}, []string{"result"}),
	}
	for _, result := range []string{"ok", "refused", "error"} {
		m.exchanges.WithLabelValues(result)
	}
	return m, errors.Join(r.Register(m.issued), r.Register(m.revoked), r.Register(m.exchanges))
}

func (m *Metrics) exchanged(result string) { m.exchanges.WithLabelValues(result).Inc() }
