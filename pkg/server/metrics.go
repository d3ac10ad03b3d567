package server

import (
	"time"

	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/metrics"
)

// counters are the metrics of handlers.
type counters struct {
	login *login.Metrics
	bots  *bots.Metrics
}

// measure registers what is read from the caches and the certificates when Prometheus asks, and
// returns what handlers count.
func (a *assembly) measure() (c counters, err error) {
	h, v := a.hub, a.views
	tenants := metrics.NewTenants(metrics.Objects{
		People: v.People, Orgs: v.Orgs, Workspaces: v.Workspaces, Bots: v.Listers().Bots.All, Sessions: v.Sessions,
	}, a.clock, h.config.Sessions.IdleTimeout)
	if err := h.registry.Register(tenants); err != nil {
		return c, err
	}
	kcp := a.clients.Transport()
	if err := (certs.Expiry{
		"serving":    h.certificate.NotAfter,
		"ca":         h.certificate.CANotAfter,
		"kcp":        kcp.ServingNotAfter,
		"kcp-client": func() time.Time { return certs.Latest(kcp.ClientCertificate()) },
	}).Register(h.registry); err != nil {
		return c, err
	}
	if c.login, err = login.NewMetrics(h.registry); err != nil {
		return c, err
	}
	c.bots, err = bots.NewMetrics(h.registry)
	return c, err
}
