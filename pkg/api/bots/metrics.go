package bots

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts the tokens that this hub has issued and revoked.
type Metrics struct{ issued, revoked prometheus.Counter }

// NewMetrics registers kedge_bot_tokens_issued_total and kedge_bot_tokens_revoked_total.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		issued:  prometheus.NewCounter(prometheus.CounterOpts{Name: "kedge_bot_tokens_issued_total", Help: "Tokens of bots that were issued."}),
		revoked: prometheus.NewCounter(prometheus.CounterOpts{Name: "kedge_bot_tokens_revoked_total", Help: "Tokens of bots that were revoked by a request."}),
	}
	if err := r.Register(m.issued); err != nil {
		return nil, err
	}
	return m, r.Register(m.revoked)
}
