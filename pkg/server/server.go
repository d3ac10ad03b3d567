package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/config"
	"github.com/faroshq/kedge-hub/pkg/api/openapi"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/metrics"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/restore/external"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/tracing"
	"github.com/faroshq/kedge-hub/pkg/usage"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// Run runs a hub until ctx ends, drains it and returns nil. It logs to the logger in ctx, and prints
// to out when it is ready and what to do next. newKCP can be nil with an external kcp.
func Run(ctx context.Context, c Config, newKCP connect.NewKCP, out io.Writer) error {
	h := &hub{config: c, out: out, ready: make(chan struct{}), registry: metrics.NewRegistry(), checks: health.NewChecks()}
	if err := h.run(ctx, newKCP); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.From(ctx).Info("stopped")
	return nil
}

type hub struct {
	config   Config
	out      io.Writer
	registry *prometheus.Registry
	checks   *health.Checks
	// certificate is that of the public listener.
	certificate *certs.Serving
	// tokens are those of --token-file, or nil. embedded is nil with an external kcp.
	tokens   *auth.StaticTokens
	embedded connect.KCP
	audit    *audit.Log
	budget   *audit.Budget
	// records, shipper, usage and usageWriter are nil without a database.
	records     *records.DB
	shipper     *records.Shipper
	usage       *usage.Counter
	usageWriter *records.UsageWriter
	// billingTarget is nil without a table that gets what is to be billed.
	billingTarget *records.BillingTarget
	limits        *httpmw.Limits
	// tracer is nil without --otlp-endpoint.
	tracer  *tracing.Tracer
	storage *storage.Monitor
	// restored is nil with an embedded kcp, unless the data folder is that of a restore that the hub has not finished.
	// orders is nil with an embedded kcp.
	restored *restored
	orders   *external.Orders
	purges   *purges
	// replays is true for the part of a hub that ends what ended after its backup.
	replays bool
	// ready is closed when the hub has said that it is.
	ready chan struct{}
}

func (h *hub) run(ctx context.Context, newKCP connect.NewKCP) (err error) {
	began := time.Now()
	if err := backup.Whole(h.config.DataDir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if err := h.openRestored(); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if h.certificate, err = certs.NewServing(h.config.Certificate(), began); err != nil {
		return err
	}
	// The embedded kcp accepts the static tokens too.
	if h.config.TokenFile != "" {
		if h.tokens, err = auth.LoadStaticTokens(h.config.TokenFile); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	if h.tracer, err = tracing.New(ctx, h.config.Traces(), h.registry); err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	defer h.tracer.Close()
	aside, err := h.setAside(ctx)
	if err != nil {
		return fmt.Errorf("--audit-log-file: %w", err)
	}
	changes, closeAudit, err := audit.Open(ctx, h.config.Audit(), h.registry)
	if err != nil {
		return fmt.Errorf("--audit-log-file: %w", err)
	}
	defer closeAudit()
	h.audit, h.purges.audit = changes, changes
	h.budget = audit.NewBudget(h.config.AuditLog.OrgWrites, h.config.Clock, changes)
	if err := errors.Join(h.registry.Register(h.budget.Counted()), h.registry.Register(h.budget.Refused())); err != nil {
		return err
	}
	defer h.recordHeads(ctx)
	if aside != "" {
		_ = changes.Write(audit.PutAside(aside))
	}
	if h.storage, err = storage.NewMonitor(h.registry); err != nil {
		return err
	}
	if err := h.openRecords(); err != nil {
		return err
	}
	defer h.closeRecords()
	h.checks.AddDetail("audit log", changes.Err)
	// The ports are opened first, so that a port in use fails before the start of kcp.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.config.ListenAddress)
	if err != nil {
		return fmt.Errorf("--listen-address: %w; stop what listens there, or give another address", err)
	}
	defer func() { _ = listener.Close() }()
	if h.limits, err = httpmw.NewLimits(clock.RealClock{}, h.registry); err != nil {
		return err
	}
	limited, err := h.limits.Connections(listener, h.config.ConnectionLimits())
	if err != nil {
		return err
	}

	// Dependencies of the API stop after it, so that open requests can complete: first the
	// listeners drain, then controllers and views stop, then kcp.
	below, stopBelow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBelow()
	kcpCtx, stopKCP := context.WithCancel(context.WithoutCancel(ctx))
	defer stopKCP()

	document, err := openapi.New(config.OpenAPI)
	if err != nil {
		return err
	}
	front := health.NewFront(h.checks, document)
	servers, serving := errgroup.WithContext(ctx)
	servers.Go(func() error {
		return serve(serving, h.newHTTPServer(serving, httpmw.LimitUnreadBody(front), h.certificate.TLS()), limited, h.config.DrainTimeout)
	})
	if err := h.checks.Register(h.registry); err != nil {
		return err
	}
	if err := h.serveMetrics(serving, servers); err != nil {
		return err
	}

	starting, stopStarting := context.WithCancel(serving)
	defer stopStarting()
	if h.restored != nil {
		servers.Go(func() error { return h.restored.extend(serving) })
	}
	log.From(ctx).Info("starting", zap.String("version", version.String()), zap.Bool("embeddedKCP", h.config.Embedded))
	// A signal during the start of kcp stops it. Later, kcp stops after the drain.
	detach := context.AfterFunc(starting, stopKCP)
	options := h.config.KCP()
	options.Embedded.Metrics, options.Embedded.Storage = h.registry, h.storage
	if h.tokens != nil {
		options.Embedded.Tokens = h.tokens
	}
	found, err := connect.Start(kcpCtx, options, newKCP)
	detach()
	if err != nil {
		return err
	}
	h.embedded = found.Embedded
	defer func() { stopKCP(); <-found.Done }()
	servers.Go(func() error {
		select {
		case err := <-found.Failed:
			return err
		case <-serving.Done():
			return nil
		}
	})
	a := &assembly{hub: h, admin: found.Config, parameters: document.Parameters}
	defer func() { stopBelow(); a.running.Wait() }()
	if err := a.start(starting, below, serving, front); err != nil {
		// A kcp that has ended, for example, ends the start.
		if cause := context.Cause(serving); cause != nil && !errors.Is(cause, context.Canceled) {
			return cause
		}
		return err
	}
	if h.embedded != nil {
		if a.backups, err = a.newBackups(); err != nil {
			return err
		}
	}
	if h.orders != nil {
		servers.Go(func() error { return h.watchOrders(serving) })
	}
	h.serveLocal(serving, servers, a.local())
	log.From(ctx).Info("ready", zap.Duration("after", time.Since(began).Round(time.Millisecond)), zap.String("url", h.config.ExternalURL))
	notify(ctx, daemon.SdNotifyReady)
	stopping := context.AfterFunc(ctx, func() { notify(ctx, daemon.SdNotifyStopping) })
	defer stopping()
	h.config.PrintNextSteps(h.out)
	close(h.ready)
	// The start, of kcp above all, leaves a hundred MiB of garbage.
	debug.FreeOSMemory()
	return servers.Wait()
}

// notify tells the service manager a state, if there is one. A hub that cannot tell serves
// nevertheless.
func notify(ctx context.Context, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.From(ctx).Warn("the service manager cannot be told", zap.String("state", state), zap.Error(err))
	}
}
