package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/api/invitations"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/api/requests"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/metrics"
)

// Limits of a client's requests, enforced before they are parsed.
const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	idleTimeout       = 120 * time.Second
)

func (h *hub) serveMetrics(ctx context.Context, servers *errgroup.Group) error {
	if h.config.MetricsListenAddress == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.config.MetricsListenAddress)
	if err != nil {
		return fmt.Errorf("--metrics-listen-address: %w; give another address, or an empty one for no metrics", err)
	}
	servers.Go(func() error {
		return serve(ctx, h.newHTTPServer(ctx, h.operators(), nil), listener, time.Second)
	})
	return nil
}

// operators serves the metrics listener: /metrics and the details of /readyz.
func (h *hub) operators() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(h.registry))
	mux.HandleFunc("GET /readyz", h.checks.Details)
	return mux
}

func (h *hub) newHTTPServer(ctx context.Context, handler http.Handler, config *tls.Config) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         config,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: h.config.Limits.MaxStreamsPerConnection},
		// OPTIONS * passes the middleware like every other request.
		DisableGeneralOptionsHandler: true,

		ErrorLog: zap.NewStdLog(log.From(ctx).Named("http").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		// The context is not ctx, because open requests outlive the signal during the drain.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

// serve serves until ctx ends and then drains: it accepts no new connections, waits for open
// requests up to the drain timeout, and cuts streams.
func serve(ctx context.Context, s *http.Server, l net.Listener, drain time.Duration) error {
	failed := make(chan error, 1)
	go func() {
		var err error
		if s.TLSConfig != nil {
			err = s.ServeTLS(l, "", "")
		} else {
			err = s.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}

// counters are the metrics of handlers.
type counters struct {
	login       *login.Metrics
	bots        *bots.Metrics
	invitations func(event string)
	requests    func(event string)
}

// measure registers what is read from the caches and the certificates when Prometheus asks, and
// returns what handlers count.
func (a *assembly) measure() (c counters, err error) {
	h, v := a.hub, a.views
	tenants := metrics.NewTenants(metrics.Objects{
		People: v.People, Orgs: v.Orgs, Workspaces: v.Workspaces, Bots: v.Bots.All, Sessions: v.Sessions.All,
	}, transport.Current(a.clock), h.config.Sessions.IdleTimeout)
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
	if c.bots, err = bots.NewMetrics(h.registry); err != nil {
		return c, err
	}
	if c.invitations, err = invitations.NewCount(h.registry); err != nil {
		return c, err
	}
	c.requests, err = requests.NewCount(h.registry)
	return c, err
}
