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

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/restore"
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

// replaying are the controllers that run while a hub ends what ended after its backup: those that end things, and that of
// people, which makes the Organizations that the backup has accepted.
var replaying = []string{"user", "organization", "workspace", "access", "membership", "membershipindex", "bot", "session"}

// ledger is where the order of a restore stands, and how far it is carried out.
type ledger interface {
	// Report returns what was done so far.
	Report(ctx context.Context) (restore.Report, error)
	// Save stores what was done, and that the order has reached a phase.
	Save(ctx context.Context, r restore.Report, phase restore.Phase) error
	// Applied reports whether another replica has ended everything.
	Applied(ctx context.Context) (bool, error)
}

// folder is the ledger of a data folder.
type folder string

// Report implements ledger.
func (f folder) Report(context.Context) (restore.Report, error) { return restore.ReadReport(string(f)) }

// Save implements ledger.
func (f folder) Save(_ context.Context, r restore.Report, phase restore.Phase) error {
	err := restore.WriteReport(string(f), r)
	if err == nil && phase == restore.PhaseHeld {
		err = restore.Done(string(f))
	}
	return err
}

// Applied implements ledger.
func (folder) Applied(context.Context) (bool, error) { return false, nil }

// restored is what a hub has to end before it serves. Before an external kcp it is there also if there is nothing to end.
type restored struct {
	// began is closed when the hub knows that it has to end something.
	began chan struct{}
	// over is closed when the hub has ended everything.
	over chan struct{}

	mu sync.Mutex
	// at and plan are those of the order, when it is whole. Until then waits says what the hub waits for, if there is
	// an order.
	at    ledger
	plan  restore.Plan
	waits string
	left  int
	why   error
}

func newRestored() *restored { return &restored{began: make(chan struct{}), over: make(chan struct{})} }

// order says what there is to end.
func (r *restored) order(at ledger, plan restore.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
	r.at, r.plan, r.left, r.waits = at, plan, len(plan.Steps), ""
}

// wait says what the hub waits for before it knows what there is to end.
func (r *restored) wait(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
	r.waits = what
}

func (r *restored) begin() {
	if !closed(r.began) {
		close(r.began)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// replaying reports whether something is left to end.
func (r *restored) replaying() bool { return r != nil && r.says() != "" }

// openRestored finds what a restore has left to do in the data folder, and whether purges are held. They are from the
// first start after a restore on. What an external kcp has is found when it answers.
func (h *hub) openRestored() error {
	dir := h.config.DataDir
	order, err := restore.Find(dir)
	if err != nil {
		return err
	}
	if !h.config.Embedded {
		h.restored = newRestored()
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
		h.restored = newRestored()
		h.restored.order(folder(dir), plan)
	}
	if h.restored != nil {
		h.checks.AddDetail("restore", h.restored.Err)
		h.checks.Restoring(h.restored.says)
	}
	held, err := restore.Held(dir)
	if err != nil {
		return err
	}
	h.purges = &purges{audit: h.audit, free: func(context.Context) error { return restore.Release(dir) }}
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
		h.registry.Register(gauge("kedge_restore_mode", "1 while the hub ends what ended after the backup that it was restored from, else 0.", h.restored.replaying)),
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
	switch {
	case closed(r.over), !closed(r.began):
		return ""
	case r.waits != "":
		return "the hub is in restore mode: " + r.waits
	}
	return fmt.Sprintf("the hub is in restore mode: %d of %d endings are left", r.left, len(r.plan.Steps))
}

// extend has the service manager wait until the hub has ended everything, or ctx ends. A replay can take longer than
// other starts.
func (r *restored) extend(ctx context.Context) error {
	select {
	case <-r.began:
	case <-r.over:
		return nil
	case <-ctx.Done():
		return nil
	}
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

// purges are held from a restore until the operator lets them run.
type purges struct {
	held  atomic.Bool
	audit *audit.Log
	// free lets the purges of all replicas run.
	free func(ctx context.Context) error
}

// release lets purges run. Controllers look again at what is due within seconds.
func (p *purges) release(w http.ResponseWriter, r *http.Request) {
	e := audit.Event{ID: rand.Text(), Actor: audit.Actor{Kind: audit.ActorHub}, Action: "release purges"}
	if err := p.audit.Around(e, false, func() error { return p.free(r.Context()) }); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if p.held.Swap(false) {
		log.From(r.Context()).Info("the operator lets purges run again")
	}
	w.WriteHeader(http.StatusNoContent)
}
