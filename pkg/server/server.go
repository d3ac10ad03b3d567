package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/metrics"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/activation"
	"github.com/faroshq/kedge-hub/pkg/reconciler/customresources"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/version"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// Run runs a hub until ctx ends, drains it and returns nil. It logs to the logger in ctx, and prints
// to out when it is ready and what to do next. newKCP can be nil with an external kcp.
func Run(ctx context.Context, c Config, newKCP connect.NewKCP, out io.Writer) error {
	h := &hub{config: c, out: out, registry: metrics.NewRegistry(), checks: health.NewChecks()}
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
	disk     *disk.Monitor
	bundle   *certs.Bundle
	// names are the hub's usernames in kcp.
	names []string
	audit *audit.Log
}

func (h *hub) run(ctx context.Context, newKCP connect.NewKCP) error {
	began := time.Now()
	if err := h.certificate(); err != nil {
		return err
	}
	closeAudit, err := h.openAudit(ctx)
	if err != nil {
		return err
	}
	defer closeAudit()
	// The ports are opened first, so that a port in use fails before the start of kcp.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.config.ListenAddress)
	if err != nil {
		return fmt.Errorf("--listen-address: %w; stop what listens there, or give another address", err)
	}
	defer func() { _ = listener.Close() }()

	// Dependencies of the API stop after it, so that open requests can complete: first the
	// listeners drain, then controllers and views stop, then kcp.
	below, stopBelow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBelow()
	kcpCtx, stopKCP := context.WithCancel(context.WithoutCancel(ctx))
	defer stopKCP()

	front := health.NewFront(h.checks)
	servers, serving := errgroup.WithContext(ctx)
	servers.Go(func() error {
		return serve(serving, newHTTPServer(serving, front, h.tls()), listener, h.config.DrainTimeout)
	})
	if err := h.serveMetrics(serving, servers); err != nil {
		return err
	}

	starting, stopStarting := context.WithCancel(serving)
	defer stopStarting()
	log.From(ctx).Info("starting", zap.String("version", version.String()), zap.Bool("embeddedKCP", h.config.Embedded))
	// A signal during the start of kcp stops it. Later, kcp stops after the drain.
	detach := context.AfterFunc(starting, stopKCP)
	config, kcpDone, kcpFailed, err := connect.Start(kcpCtx, h.config.kcp(), newKCP)
	detach()
	if err != nil {
		return err
	}
	defer func() { stopKCP(); <-kcpDone }()
	wait, err := h.assemble(starting, below, serving, config, front)
	defer func() { stopBelow(); wait() }()
	if err != nil {
		return err
	}
	log.From(ctx).Info("ready", zap.Duration("after", time.Since(began).Round(time.Millisecond)), zap.String("url", h.config.ExternalURL))
	h.printNextSteps()
	// The start, of kcp above all, leaves a hundred MiB of garbage.
	debug.FreeOSMemory()

	servers.Go(func() error {
		select {
		case err := <-kcpFailed:
			return err
		case <-serving.Done():
			return nil
		}
	})
	return servers.Wait()
}

// assemble creates the tree in kcp, the views, the API and the controllers. wait waits until all
// goroutines that it started have returned.
func (h *hub) assemble(starting, below, serving context.Context, config *rest.Config, front *health.Front) (wait func(), err error) {
	var running sync.WaitGroup
	wait = running.Wait
	clients, err := kcp.NewClients(config, h.registry)
	if err != nil {
		return wait, err
	}
	running.Go(func() { h.checks.Probe(below, clients) })
	if h.disk, err = disk.NewMonitor(h.config.kcp().Embedded.Dir, h.registry); err != nil {
		return wait, err
	}
	if h.config.Embedded {
		h.checks.AddDisk(h.disk.Err)
		running.Go(func() { h.disk.Watch(below) })
	}
	clusters, err := bootstrap.Run(starting, clients, h.config.Tree)
	if err != nil {
		return wait, err
	}
	h.config.Clock = clients.Transport().Clock(h.config.Clock)
	closer, err := connect.ShardAdminClients(below, h.config.kcp(), clients, config.Host)
	if err != nil {
		return wait, err
	}
	if h.names, err = connect.Usernames(starting, clusters.Providers, clients, closer); err != nil {
		return wait, err
	}
	if clusters.WorkspacePolicy, err = tenancy.NewPolicy(h.names...); err != nil {
		return wait, err
	}
	in := views.NewInformers(clients, closer, clusters.OrgBindings)
	tenancyEndpoints := informer.NewEndpoints(clients, clusters.Providers, tenancy.ExportTenancy,
		in.Users, in.Organizations, in.Memberships, in.Indexes, in.Workspaces, in.OrgBindings)
	accessEndpoints := informer.NewEndpoints(clients, clusters.Providers, tenancy.ExportAccess,
		in.Namespaces, in.ClusterRoles, in.ClusterRoleBindings, in.Bindings, in.Policies, in.PolicyBindings)
	there := transport.Healths{clients.Health(), tenancyEndpoints.Health(), accessEndpoints.Health()}
	v, err := views.New(views.Clusters{Users: clusters.Users, Orgs: clusters.Orgs, Providers: clusters.Providers, Hub: clusters.IDs()},
		in, h.registry, tenancyEndpoints.Synced, accessEndpoints.Synced)
	if err != nil {
		return wait, err
	}
	leader, err := newLeader(h.config, clients, clusters, h.registry)
	if err != nil {
		return wait, err
	}
	metrics, err := controller.NewMetrics(h.registry)
	if err != nil {
		return wait, err
	}
	deps := reconciler.Deps{
		Clients: clients.Fenced(leader.Until), Freezer: freeze.New(closer.Fenced(leader.Until), in.Inactive, deactivationHint),
		Views: v, Clusters: clusters, Settings: h.config.settings(), Metrics: metrics, Audit: h.audit,
	}
	accessRules, template := access.NewReconciler(deps), workspace.TemplateOf(deps)
	leading := controllers(deps, accessRules, template)
	// These controllers run on every replica.
	replica := deps
	replica.Clients, replica.Freezer = clients, freeze.New(closer, in.Inactive, deactivationHint)
	definitions, repairs := customresources.NewFollower(replica), workspace.NewTemplateRepair(replica, template)
	wrote := func(e tenancy.Entry, w tenancy.ObjectWrite) {
		definitions.Wrote(e, w)
		repairs.Wrote(e, w)
	}
	app, ended, err := h.api(serving, clients, there, clusters, v, config, h.audit, access.NewReadiness(accessRules, v), wrote)
	if err != nil {
		return wait, err
	}
	running.Go(func() { tenancyEndpoints.Run(below) })
	running.Go(func() { accessEndpoints.Run(below) })
	running.Go(func() { informer.Watch(below, clusters.Initializing, in.Initializing) })
	if closer != clients {
		reactivation := activation.NewController(replica)
		running.Go(func() { h.disk.RunWhileRoom(below, reactivation.Run) })
		running.Go(func() { informer.Watch(below, []string{config.Host}, in.Inactive) })
	}
	if err := awaitReady(starting, v.Ready); err != nil {
		return wait, err
	}
	running.Go(func() { ended.Run(below) })
	running.Go(func() {
		h.disk.RunWhileRoom(below, func(ctx context.Context) { there.RunWhileAvailable(ctx, definitions.Run) })
	})
	running.Go(func() {
		h.disk.RunWhileRoom(below, func(ctx context.Context) { there.RunWhileAvailable(ctx, repairs.Run) })
	})
	running.Go(func() { h.disk.RunWhileRoom(below, func(ctx context.Context) { lead(ctx, leader, there, leading) }) })
	if err := awaitReady(starting, h.checks.KCPReachable); err != nil {
		return wait, err
	}
	// /readyz must not succeed before the API is served.
	front.Open(app)
	h.checks.Assembled(v.Ready)
	return wait, nil
}

// openAudit opens the audit log.
func (h *hub) openAudit(ctx context.Context) (closing func(), err error) {
	if h.config.AuditLogFile == "" {
		h.audit = audit.New(ctx, nil)
		return func() {}, nil
	}
	f, err := os.OpenFile(h.config.AuditLogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--audit-log-file: %w", err)
	}
	h.audit = audit.New(ctx, f)
	return func() { _ = f.Close() }, nil
}

func awaitReady(ctx context.Context, ready func() bool) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

func (h *hub) certificate() (err error) {
	c := h.config
	if c.TLSCertFile != "" {
		h.bundle, err = certs.Load(c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile)
		return err
	}
	external, err := url.Parse(c.ExternalURL)
	if err != nil {
		return fmt.Errorf("--external-url: %w", err)
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", external.Hostname()}
	if listen, _, err := net.SplitHostPort(c.ListenAddress); err == nil {
		if ip := net.ParseIP(listen); ip != nil && !ip.IsUnspecified() {
			hosts = append(hosts, ip.String())
		}
	}
	h.bundle, err = certs.Ensure(filepath.Join(c.DataDir, "tls"), hosts, time.Now())
	return err
}

func (h *hub) tls() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{h.bundle.Certificate},
		NextProtos:   []string{"h2", "http/1.1"},
	}
}

func (h *hub) serveMetrics(ctx context.Context, servers *errgroup.Group) error {
	if h.config.MetricsListenAddress == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.config.MetricsListenAddress)
	if err != nil {
		return fmt.Errorf("--metrics-listen-address: %w; give another address, or an empty one for no metrics", err)
	}
	servers.Go(func() error {
		return serve(ctx, newHTTPServer(ctx, h.operators(), nil), listener, time.Second)
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

func (h *hub) printNextSteps() {
	ca := h.config.TLSCAFile
	if ca == "" {
		ca = filepath.Join(h.config.DataDir, "tls", "ca.crt")
	}
	fmt.Fprintf(h.out, `
kedge-hub is ready.

  URL  %s
  CA   %s

Next steps, as a person with a token:

  kedge login --server %s --ca-file %s --token-file FILE
  kedge orgs create "My organization"
  kedge workspaces create "My workspace"
  kedge kubeconfig > kubeconfig
  kubectl --kubeconfig kubeconfig get namespaces

`, h.config.ExternalURL, ca, h.config.ExternalURL, ca)
}
