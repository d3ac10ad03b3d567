package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/metrics"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/template"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// releasePath lets purges run again.
	releasePath = "/purges/release"
	// replayInterval is the time between two looks at what is left of a restore.
	replayInterval = 100 * time.Millisecond
	// replayPatience is how long an ending may fail while kcp answers and nothing else moves.
	replayPatience = 10 * time.Minute
	// extendInterval is the time after which the service manager is told that the start goes on, and extension how long
	// it then waits.
	extendInterval, extension = 15 * time.Second, time.Minute
)

// replaying are the controllers that run while a hub ends what ended after its backup.
var replaying = []string{"organization", "workspace", "access", "membership", "membershipindex", "bot", "session"}

// restored is what a hub has to end before it serves.
type restored struct {
	dir    string
	plan   restore.Plan
	report restore.Report

	mu   sync.Mutex
	left int
	why  error
	// over is closed when the hub has ended everything.
	over chan struct{}
}

func newRestored(dir string, plan restore.Plan) *restored {
	return &restored{dir: dir, plan: plan, left: len(plan.Steps), over: make(chan struct{})}
}

// openRestored finds what a restore has left to do in the data folder, and whether purges are held. They are from the
// first start after a restore on.
func (h *hub) openRestored() error {
	dir := h.config.DataDir
	order, err := restore.Find(dir)
	if err != nil {
		return err
	}
	if order != nil {
		if !h.config.Embedded {
			return fmt.Errorf("%s was restored for an embedded kcp; start the hub without --kcp-kubeconfig", dir)
		}
		plan, err := restore.Read(*order)
		if err != nil {
			return err
		}
		if err := restore.Hold(dir); err != nil {
			return err
		}
		h.restored = newRestored(dir, plan)
		h.checks.AddDetail("restore", h.restored.Err)
		h.checks.Restoring(h.restored.says)
	}
	held, err := restore.Held(dir)
	if err != nil {
		return err
	}
	h.purges = &purges{dir: dir, audit: h.audit}
	h.purges.held.Store(held)
	gauge := func(name, help string, is func() bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if is() {
				return 1
			}
			return 0
		})
	}
	return errors.Join(
		h.registry.Register(gauge("kedge_restore_mode", "1 while the hub ends what ended after the backup that it was restored from, else 0.", func() bool {
			return h.restored != nil && h.restored.Err() != nil
		})),
		h.registry.Register(gauge("kedge_purges_held", "1 from a restore until kedge-hub restore --release, while nothing is purged, else 0.", h.purges.held.Load)),
	)
}

// Err says that the hub is in restore mode, and why still.
func (r *restored) Err() error {
	says := r.says()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case says == "":
		return nil
	case r.why != nil:
		return fmt.Errorf("%s: %w", says, r.why)
	}
	return errors.New(says)
}

// says is what everybody may know. It is empty when the hub has ended everything.
func (r *restored) says() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.over:
		return ""
	default:
		return fmt.Sprintf("the hub is in restore mode: %d of %d endings are left", r.left, len(r.plan.Steps))
	}
}

// extend has the service manager wait until the hub has ended everything, or ctx ends. A replay can take longer than
// other starts.
func (r *restored) extend(ctx context.Context) error {
	ticker := time.NewTicker(extendInterval)
	defer ticker.Stop()
	for {
		notify(ctx, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extension.Microseconds()))
		select {
		case <-ticker.C:
		case <-r.over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// after returns a func that runs a controller when the hub has ended everything. One that ends things runs at once.
func (r *restored) after(name string, run func(context.Context)) func(context.Context) {
	if r == nil || slices.Contains(replaying, name) {
		return run
	}
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-r.over:
			run(ctx)
		}
	}
}

func (r *restored) waiting(left int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.why = left, why
}

func (r *restored) end() { close(r.over) }

// ServeHTTP refuses what the operator asks for meanwhile.
func (r *restored) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, fmt.Sprintf("%s; repeat this when it serves", cmp.Or(r.Err(), errors.New("the hub is starting"))), http.StatusServiceUnavailable)
}

// replay ends what ended after the backup. It returns when everything is written, and nothing that it began runs any
// more.
func (h *hub) replay(starting context.Context, admin *rest.Config) (err error) {
	below, stop := context.WithCancel(starting)
	servers, serving := errgroup.WithContext(below)
	part := &hub{
		config: h.config, registry: metrics.NewRegistry(), checks: health.NewChecks(), tokens: h.tokens, embedded: h.embedded, audit: h.audit,
		storage: h.storage, purges: h.purges,
	}
	a := &assembly{hub: part, admin: admin}
	defer func() {
		stop()
		a.running.Wait()
		err = errors.Join(err, servers.Wait())
		if a.clients != nil {
			a.clients.Close()
		}
	}()
	h.serveLocal(serving, servers, h.restored)
	log.From(starting).Info("restore mode: ending what ended after the backup", zap.Int("endings", len(h.restored.plan.Steps)))
	applier, err := a.newApplier(starting, below, h.restored)
	if err != nil {
		return err
	}
	written, err := restore.ReadReport(h.config.DataDir)
	if err != nil {
		return err
	}
	h.restored.report, err = applier.Run(starting, h.restored.plan, written)
	return err
}

// newApplier starts what a replay needs of a hub.
func (a *assembly) newApplier(starting, below context.Context, r *restored) (*restore.Applier, error) {
	if err := a.connect(below); err != nil {
		return nil, err
	}
	if err := a.bootstrap(starting, below); err != nil {
		return nil, err
	}
	if err := a.caches(); err != nil {
		return nil, err
	}
	if err := a.controllers(); err != nil {
		return nil, err
	}
	s := store.New(a.writers(), a.hub.config.Tree, a.clusters.Users, a.clusters.Orgs)
	sessions, err := a.newSessions(s, nil)
	if err != nil {
		return nil, err
	}
	write := a.writing(below)
	a.runViews(below, write)
	if err := awaitReady(starting, a.views.Ready); err != nil {
		return nil, err
	}
	var leading []func(context.Context)
	for _, c := range a.leading {
		if slices.Contains(replaying, c.Name()) {
			leading = append(leading, a.whileAvailable(c.Run))
		}
	}
	write(func(ctx context.Context) { a.leader.RunAll(ctx, leading...) })
	return &restore.Applier{
		Views: a.views, Members: a.views, Store: s, Sessions: sessions, Audit: a.hub.audit, Clock: a.clock, RightsClock: transport.Current(a.clock),
		Within: a.freezer.Within, Kept: template.Keeps(a.hub.config.Template), Patience: replayPatience,
		Interval: replayInterval, Save: func(report restore.Report) error { return restore.WriteReport(r.dir, report) }, Waiting: r.waiting,
	}, nil
}

// endRestore ends restore mode when the bindings in kcp have followed what was ended, and says what the restore did. The
// views have all of it: they were filled afterwards.
func (a *assembly) endRestore(starting context.Context) error {
	r := a.hub.restored
	if r == nil {
		return nil
	}
	if err := a.awaitFollowed(starting, r); err != nil {
		return err
	}
	r.report.WithoutAdmin, r.report.Purges = a.withoutAdmin(), a.duePurges()
	if err := restore.WriteReport(r.dir, r.report); err != nil {
		return err
	}
	if err := restore.Done(r.dir); err != nil {
		return err
	}
	r.end()
	r.log(log.From(starting))
	return nil
}

// awaitFollowed waits for the bindings in kcp. Where they do not follow for a long time, the hub serves nevertheless: it
// refuses by itself who is no member, and its controllers go on.
func (a *assembly) awaitFollowed(ctx context.Context, r *restored) error {
	left, moved := slices.Clone(r.plan.Steps), a.clock.Now()
	lags, never := errors.New("the bindings in kcp follow"), errors.New("the hub has ended it, and the bindings in kcp do not follow")
	return wait.PollUntilContextCancel(ctx, replayInterval, true, func(ctx context.Context) (bool, error) {
		before := len(left)
		left = slices.DeleteFunc(left, a.followed)
		if len(left) < before || !a.hub.checks.KCPReachable() {
			moved = a.clock.Now()
		}
		r.waiting(len(left), lags)
		if a.clock.Since(moved) < replayPatience {
			return len(left) == 0, nil
		}
		for _, s := range left {
			r.report.Impossible = append(r.report.Impossible, restore.GiveUp(ctx, s, never, replayPatience))
		}
		return true, nil
	})
}

// followed reports whether kcp has nothing left that a Step took.
func (a *assembly) followed(s restore.Step) bool {
	switch s.Kind {
	case restore.RemoveMember, restore.LimitMember:
		return a.rights.Followed(s.Org, s.Workspace, s.Object)
	case restore.RejectPerson, restore.SuspendPerson, restore.DeletePerson:
		return a.rights.FollowedEverywhere(s.Object)
	default:
		return true
	}
}

// withoutAdmin returns the Organizations that no admin can manage.
func (a *assembly) withoutAdmin() (orgs []string) {
	now := transport.Current(a.clock).Now()
	for _, o := range a.views.Orgs() {
		if o.Organization == nil || o.Deleted() || o.Spec.Personal || o.ClusterID == "" {
			continue
		}
		if !slices.ContainsFunc(tenancy.Living(a.views.MembershipsIn(o.ClusterID), now), func(m *v1alpha1.Membership) bool {
			return m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.Role.AtLeast(v1alpha1.RoleAdmin)
		}) {
			orgs = append(orgs, o.UUID())
		}
	}
	slices.Sort(orgs)
	return orgs
}

// duePurges returns what would be purged now.
func (a *assembly) duePurges() (due []restore.Purge) {
	now, graces := a.clock.Now(), graces(a.hub.config)
	add := func(p restore.Purge, at time.Time) {
		if p.Due = at.UTC(); !now.Before(at) {
			due = append(due, p)
		}
	}
	for _, o := range a.views.Orgs() {
		if o.Organization == nil {
			continue
		}
		if at := tenancy.PurgeAt(o.Status.DeletionRequestedAt, graces.Deletion); at != nil {
			add(restore.Purge{Kind: "organization", Org: o.UUID()}, at.Time)
		}
		for _, ws := range a.views.Workspaces(o.UUID()) {
			if at := graces.PurgeAt(ws); at != nil {
				add(restore.Purge{Kind: "workspace", Org: o.UUID(), Workspace: ws.UUID}, at.Time)
			}
		}
	}
	for _, u := range a.views.People() {
		if at := tenancy.PurgeAt(u.Status.DeletionRequestedAt, graces.Deletion); at != nil {
			add(restore.Purge{Kind: "person", Object: u.Name}, at.Time)
		}
	}
	slices.SortFunc(due, func(a, b restore.Purge) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Org, b.Org), cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Object, b.Object))
	})
	return due
}

func (r *restored) log(to *zap.Logger) {
	for _, end := range r.report.Ends {
		to.Info("restored: what ended later on this replica is not known", zap.String("replica", end.Replica), zap.Uint64("seq", end.Seq), zap.Time("until", end.Time))
	}
	for _, unknown := range r.report.Unknown {
		to.Warn("restored without knowing all that ended, as the operator accepted", zap.String("unknown", unknown))
	}
	for _, s := range r.report.GivenUp() {
		to.Error("restored, and what ended after the backup may be there again: end it", zap.String("step", string(s.Kind)), zap.String("org", s.Org),
			zap.String("workspace", s.Workspace), zap.String("object", s.Object))
	}
	for _, uuid := range r.report.WithoutAdmin {
		to.Warn("restored: an organization has no admin; a platform admin can help", zap.String("org", uuid))
	}
	to.Info("restored: what ended after the backup is ended, and purges are held until kedge-hub restore --release", zap.Int("ended", len(r.report.Done)),
		zap.Int("impossible", len(r.report.Impossible)), zap.Int("lost", len(r.report.Lost)), zap.Int("heldPurges", len(r.report.Purges)),
		zap.String("report", restore.ReportFile(r.dir)))
}

// purges are held from a restore until the operator lets them run.
type purges struct {
	dir   string
	held  atomic.Bool
	audit *audit.Log
}

// release lets purges run. Controllers look again at what is due within a minute.
func (p *purges) release(w http.ResponseWriter, r *http.Request) {
	e := audit.Event{ID: rand.Text(), Actor: audit.Actor{Kind: audit.ActorHub}, Action: "release purges"}
	if err := p.audit.Around(e, false, func() error { return restore.Release(p.dir) }); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if p.held.Swap(false) {
		log.From(r.Context()).Info("the operator lets purges run again")
	}
	w.WriteHeader(http.StatusNoContent)
}
