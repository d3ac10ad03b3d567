package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/accounts"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded/disk"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/leader"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/activation"
	"github.com/faroshq/kedge-hub/pkg/reconciler/customresources"
	"github.com/faroshq/kedge-hub/pkg/reconciler/spare"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/storage/meter"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// assembly is everything between kcp and the listeners. The methods that start calls are the
// steps of a start; each sets the fields that later steps read.
type assembly struct {
	hub *hub
	// admin is the client configuration of kcp's admin.
	admin *rest.Config
	// parameters are the query parameters that the API has.
	parameters httpapi.Parameters
	// running are the goroutines that the steps started.
	running sync.WaitGroup

	// connect
	clients *kcp.Clients

	// bootstrap
	clusters bootstrap.Clusters
	// clock is the clock of what is destroyed for good: the earliest time that it may be at kcp. Rights, sessions and
	// tokens begin and end by transport.Current of it.
	clock clock.WithTicker
	// shardAdmin can deactivate logical clusters. It is equal to clients if kcp's kubeconfig
	// has no shard admin. sharded says that it is for a shard and not for the front proxy.
	shardAdmin *kcp.Clients
	sharded    bool
	// names are the hub's usernames in kcp.
	names []string
	// keyring has the keys of sessions.
	keyring *session.Keyring

	// accounts has how kcp issues tokens of ServiceAccounts.
	accounts *accounts.Accounts

	// caches
	views     *views.Views
	available transport.Healths

	// meter counts what Workspaces store.
	meter *meter.Meter
	// upstream are the connections of proxied requests to kcp.
	upstream *transport.Connections

	// controllers
	// freezer deactivates logical clusters, as the controllers of the leader do.
	freezer *freeze.Freezer
	leader  *leader.Leader
	leading []*controller.Controller
	rights  access.Readiness
	// spares runs after the hub is ready. spareHash identifies what this hub makes them with.
	spares    *controller.Controller
	spareHash string
	// These run on every replica. reactivation is nil without a shard admin.
	definitions  *customresources.Follower
	reactivation *controller.Controller

	// api
	// costCenters are those that may be written.
	costCenters api.CostCenters
	// oidc is nil without an issuer.
	oidc *auth.OIDC
	// jobs is nil without an issuer of jobs.
	jobs      *auth.Workloads
	refusals  *bots.Refusals
	tokenUses *bots.Uses
	// forgetSubjectTokens removes the records of ID tokens of jobs that expired before a moment.
	forgetSubjectTokens func(ctx context.Context, before time.Time) error
	// static are the tokens with which people sign in to the portal; nil means that nobody does.
	static     *auth.StaticTokens
	sessions   *session.Service
	uses       *httpmw.Uses
	auditor    *httpmw.Auditor
	app        http.Handler
	revocation *revocation.Revocation

	// looking is held while kcp is compared for the operator.
	looking sync.Mutex
	// backups is nil without an embedded kcp.
	backups *backups
}

// start takes the steps of a start and returns when the API is served. starting ends the start;
// below ends the goroutines; serving ends when the listeners drain.
func (a *assembly) start(starting, below, serving context.Context, front *health.Front) error {
	if err := a.connect(below); err != nil {
		return err
	}
	if err := a.bootstrap(starting, below); err != nil {
		return err
	}
	if err := a.findOrder(starting); err != nil {
		return err
	}
	if err := a.hub.replay(starting, a.admin); err != nil {
		return err
	}
	if err := a.caches(); err != nil {
		return err
	}
	if err := a.controllers(); err != nil {
		return err
	}
	if err := a.api(serving); err != nil {
		return err
	}
	return a.run(starting, below, front)
}

// connect creates the clients of kcp, and starts to check whether kcp answers and how full its disk
// is.
func (a *assembly) connect(below context.Context) (err error) {
	h := a.hub
	if a.clients, err = kcp.NewClients(a.admin, h.registry); err != nil {
		return err
	}
	a.clients = a.clients.Traced(h.tracer.Calls).Announcing(httpmw.BeforeWrite)
	a.running.Go(func() { h.checks.Probe(below, a.clients) })
	if h.config.Embedded {
		for _, store := range []string{storage.DiskStore, storage.EtcdStore} {
			h.checks.AddDetail(store, func() error { return h.storage.Err(store) })
		}
		dir := h.config.KCP().Embedded.Dir
		a.running.Go(func() { h.storage.WatchDisk(below, func() (free, size int64, err error) { return disk.Usage(dir) }) })
	}
	return nil
}

// bootstrap creates the hub's tree in kcp and asks kcp for the time and for the hub's names.
func (a *assembly) bootstrap(starting, below context.Context) (err error) {
	c := a.hub.config
	if a.clusters, err = bootstrap.Run(starting, a.clients, c.Tree); err != nil {
		return err
	}
	a.clock = a.clients.Transport().Clock(c.Clock)
	if a.shardAdmin, a.sharded, err = connect.ShardAdminClients(below, c.KCP(), a.clients); err != nil {
		return err
	}
	if a.names, err = connect.Usernames(starting, a.clients, a.shardAdmin); err != nil {
		return err
	}
	a.accounts = accounts.New(a.clients, a.clusters.Providers, tenancy.BotAudience, c.Clock)
	a.hub.checks.AddDetail("bots", a.accounts.Err)
	a.hub.checks.AddDetail("bot tokens in kcp", a.accounts.LookupErr)
	a.running.Go(func() { a.accounts.Run(below) })
	if a.clusters.WorkspacePolicy, err = tenancy.NewPolicy(a.names...); err != nil {
		return err
	}
	a.keyring, err = a.sessionKeys(starting)
	return err
}

// caches creates the views. They are empty until run.
func (a *assembly) caches() (err error) {
	c := a.clusters
	if a.views, err = views.New(views.Config{
		// The hub's own logical clusters have the people and the Organizations.
		Clusters: views.Clusters{Root: c.Root, Users: c.Users, Orgs: c.Orgs, Providers: c.Providers, Hub: c.IDs()},
		Clients:  a.clients, Admin: a.shardAdmin, OrgBindings: c.OrgBindings,
		Clock: transport.Current(a.clock), Metrics: a.hub.registry,
	}); err != nil {
		return err
	}
	a.available = transport.Healths{a.clients.Health()}
	for _, e := range a.views.Exports() {
		a.available = append(a.available, e.Health())
	}
	a.hub.checks.AddDetail("shards", a.views.Outage)
	a.meter, err = a.newMeter()
	return err
}

// controllers creates the controllers of the leader and those of every replica.
func (a *assembly) controllers() (err error) {
	h := a.hub
	if a.leader, err = newLeader(h.config, a.clients, a.clusters, h.registry); err != nil {
		return err
	}
	metrics, err := controller.NewMetrics(h.registry)
	if err != nil {
		return err
	}
	var locate freeze.Locate
	if a.sharded {
		locate = connect.NewLocate(a.clients, a.shardAdmin)
	}
	if a.spareHash, err = spareHashOf(h.config, a.clusters); err != nil {
		return err
	}
	// What the controllers accepted is completed above the first floor of the store. Above the second
	// they create nothing.
	clients, shardAdmin := a.clients.Admitted(h.storage.AdmitCreation), a.shardAdmin.Admitted(h.storage.AdmitCreation)
	replica := reconciler.Deps{
		Clients: clients, Freezer: freeze.New(shardAdmin, locate, a.views.Inactive, deactivationHint),
		Views: a.views, Clusters: a.clusters, Initializing: a.views.Initializers.URLs,
		Settings: settings(h.config, a.clock, a.spareHash, func() bool { return h.storage.Level() != storage.Open }),
		Metrics:  metrics.Traced(h.tracer), Audit: h.audit,
		ProbeBackend: h.config.BackendProber().Probe,
	}
	replica.Settings.Hold, replica.Settings.Replaying = h.purges.held.Load, h.replays
	// What the leader's controllers write is fenced.
	fenced := replica
	fenced.Clients = clients.Fenced(a.leader.Until)
	a.freezer = freeze.New(shardAdmin.Fenced(a.leader.Until), locate, a.views.Inactive, deactivationHint)
	fenced.Freezer = a.freezer
	accessRules, template := access.NewReconciler(fenced), workspace.TemplateOf(fenced)
	a.leading = controllers(fenced, accessRules, template)
	counted, err := spare.NewMetrics(h.registry, a.views, a.clusters.Orgs)
	if err != nil {
		return err
	}
	a.spares = spare.NewController(fenced, counted)
	a.rights = access.NewReadiness(accessRules, a.views)
	a.definitions = customresources.NewFollower(replica)
	if a.shardAdmin != a.clients {
		a.reactivation = activation.NewController(replica)
	}
	return nil
}

// run fills the caches, then runs the controllers, and then serves the API.
func (a *assembly) run(starting, below context.Context, front *health.Front) error {
	available := a.whileAvailable
	billing, err := a.billing()
	if err != nil {
		return err
	}
	accessed := a.access()
	a.runViews(below)
	a.runAudit(below)
	a.runUsage(below)
	if a.oidc != nil {
		a.running.Go(func() { a.oidc.Run(below) })
	}
	for _, issuer := range a.hub.config.CI.Issuers {
		a.running.Go(func() { a.jobs.Run(below, issuer) })
	}
	if err := awaitReady(starting, a.views.Ready); err != nil {
		return err
	}
	a.running.Go(func() { a.refusals.Run(below) })
	a.running.Go(func() { a.tokenUses.Run(below) })
	a.running.Go(func() { a.revocation.Run(below) })
	a.running.Go(func() { a.uses.Run(below) })
	a.running.Go(func() { a.meter.Run(below) })
	a.write(below, available(a.definitions.Run))
	leading := make([]func(context.Context), 0, len(a.leading)+5)
	leading = append(leading, available(a.forgetJobs))
	if a.hub.usage != nil {
		leading = append(leading, available(a.measureUsage))
	}
	leading = append(leading, billing...)
	if accessed != nil {
		// While kcp does not answer, nobody sees who gets or loses access.
		leading = append(leading, available(accessed.Run))
	}
	for _, c := range a.leading {
		leading = append(leading, available(a.hub.restored.after(c.Name(), c.Run)))
	}
	// The first spares take time from nobody who waits for the start.
	leading = append(leading, available(func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-a.hub.ready:
			a.spares.Run(ctx)
		}
	}))
	files, err := a.rotation()
	if err != nil {
		return err
	}
	a.running.Go(func() { files.Run(below) })
	a.running.Go(func() { a.hub.certificate.Renew(below, clock.RealClock{}) })
	a.lead(below, leading...)
	if err := awaitReady(starting, a.hub.checks.KCPReachable); err != nil {
		return err
	}
	if err := a.endRestore(starting); err != nil {
		return err
	}
	// /readyz must not succeed before the API is served.
	front.Open(a.app)
	a.hub.checks.Assembled(a.views.Ready)
	return nil
}

// write runs what writes to kcp until below ends: not while its disk and the reserve are full.
func (a *assembly) write(below context.Context, run func(context.Context)) {
	a.running.Go(func() { a.hub.storage.RunWhileOpen(below, run) })
}

// lead is write for what runs while this replica leads. Each term of a controller begins with all keys, because the
// queues do not have the events of another leader's term.
func (a *assembly) lead(below context.Context, runs ...func(context.Context)) {
	a.write(below, func(ctx context.Context) { a.leader.RunAll(ctx, runs...) })
}

func (a *assembly) whileAvailable(run func(context.Context)) func(context.Context) {
	return func(ctx context.Context) { a.available.RunWhileAvailable(ctx, run) }
}

// runViews fills the caches, and reactivates what keeps kcp from serving them.
func (a *assembly) runViews(below context.Context) {
	a.running.Go(func() { a.views.Run(below) })
	switch {
	case a.reactivation != nil && a.sharded:
		a.write(below, a.reactivation.Run)
		a.running.Go(func() { informer.NewShards(a.clients, a.views.Inactive).Run(below) })
	case a.reactivation != nil:
		a.write(below, a.reactivation.Run)
		a.running.Go(func() { informer.Watch(below, []string{a.admin.Host}, a.views.Inactive) })
	}
}

func awaitReady(ctx context.Context, ready func() bool) error {
	return wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) { return ready(), nil })
}
