package meter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/fairqueue"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// allowance is the share of a limit that may grow without a measurement: one part in so many.
	allowance = 20
	// pause is the shortest time between two measurements of a Workspace, and duty how many times as
	// long as the last one took it is at least; dutyFull is that of a Workspace at a limit.
	pause, duty, dutyFull = 10 * time.Second, 20, 4
	// waitFull is the longest time between two measurements of a Workspace at a limit.
	waitFull = time.Minute
	// stale is the age at which a measurement is made again without a request.
	stale = time.Hour
	// retryUnread is the age at which an incomplete measurement is.
	retryUnread = 5 * time.Minute
	// measureTimeout limits one measurement.
	measureTimeout = 5 * time.Minute
	// retryUnmeasured is the Retry-After until the first measurement.
	retryUnmeasured = 2 * time.Second
	// lookForStale is the interval at which old measurements are looked for.
	lookForStale = 30 * time.Second
)

// Workspace is what is measured.
type Workspace struct{ Org, UUID, Cluster string }

// Use is what a Workspace stores, or what a request adds. Definitions are CustomResourceDefinitions, and
// Bindings are APIBindings.
type Use struct{ Objects, Bytes, Definitions, Bindings int64 }

func (u Use) plus(v Use) Use {
	return Use{u.Objects + v.Objects, u.Bytes + v.Bytes, u.Definitions + v.Definitions, u.Bindings + v.Bindings}
}

func (u Use) minus(v Use) Use {
	return u.plus(Use{-v.Objects, -v.Bytes, -v.Definitions, -v.Bindings})
}

// Limits are the most that a Workspace may store, and the most bytes of an Organization. 0 is no limit.
type Limits struct {
	Workspace Use
	OrgBytes  int64
}

// Reading is what a measurement finds, by resource. Unread are the resources that cannot be read at the
// moment; one that ends in a slash stands for all that begin so.
type Reading struct {
	ByResource map[string]Use
	Unread     []string
}

// Config is the configuration of a Meter.
type Config struct {
	Limits Limits
	// Measure reads what a logical cluster stores.
	Measure func(ctx context.Context, cluster string) (Reading, error)
	// Workspaces returns those of an Organization.
	Workspaces func(org string) []Workspace
	Clock      clock.WithTicker
	Metrics    prometheus.Registerer
}

// Meter counts what Workspaces store.
type Meter struct {
	config   Config
	refused  *prometheus.CounterVec
	duration prometheus.Histogram

	mu sync.Mutex
	// of has the Workspaces that have grown, by logical cluster.
	of    map[string]*counted
	queue fairqueue.Queue[string, string]
	// filled is signalled when the queue has something.
	filled chan struct{}
}

// counted is what is known of a Workspace.
type counted struct {
	Workspace
	// measured is the last measurement, which began at and took so long. known is false before the first.
	// of has what is not empty of it, by resource.
	measured Use
	of       map[string]Use
	known    bool
	at       time.Time
	took     time.Duration
	// grown was admitted since the last measurement began.
	grown Use
	// incomplete is true if the last measurement could not read everything.
	incomplete bool
	// queued is true while it waits for a measurement, urgent if somebody needs that soon.
	queued, urgent bool
}

func (c *counted) use() Use { return c.measured.plus(c.grown) }

// New returns a Meter. It registers kedge_storage_tenant_*.
func New(c Config) (*Meter, error) {
	m := &Meter{
		config: c, of: map[string]*counted{}, filled: make(chan struct{}, 1),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kedge_storage_tenant_refused_total",
			Help: "Requests refused because a tenant has reached a limit of storage, by limit.",
		}, []string{"limit"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kedge_storage_measure_seconds", Help: "Time in seconds of a measurement of what a Workspace stores.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}),
	}
	incomplete := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_storage_incomplete_workspaces",
		Help: "Workspaces whose last measurement could not read everything that they store.",
	}, m.incomplete)
	for _, collector := range []prometheus.Collector{m.refused, m.duration, incomplete} {
		if err := c.Metrics.Register(collector); err != nil {
			return nil, fmt.Errorf("register the metrics of the meter: %w", err)
		}
	}
	return m, nil
}

// incomplete returns the number of Workspaces of which not everything could be read.
func (m *Meter) incomplete() (n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.of {
		if c.incomplete {
			n++
		}
	}
	return n
}

// Admit counts what a request adds to a Workspace. The error refuses the request, and then nothing is
// counted.
func (m *Meter) Admit(w Workspace, more Use) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.count(w)
	err := m.judge(c, more)
	if err == nil {
		c.grown = c.grown.plus(more)
	}
	if err != nil || m.exceeds(c.grown) != nil {
		m.enqueue(c)
	}
	return err
}

// Read returns what a Workspace stores, and all Workspaces of its Organization together. ok is false
// until it was measured, which Read has done.
func (m *Meter) Read(w Workspace) (use Use, orgBytes int64, ok bool) {
	if w.Cluster == "" {
		return Use{}, 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.count(w)
	return c.use(), m.orgBytes(w.Org), c.known
}

// ReadOrg returns what the Workspaces of an Organization store, by UUID, as far as they were measured. It has the others
// measured when nobody needs a measurement sooner.
func (m *Meter) ReadOrg(org string) map[string]Use {
	all := m.config.Workspaces(org)
	found := make(map[string]Use, len(all))
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range all {
		c := m.of[w.Cluster]
		switch {
		case w.Cluster == "":
		case c == nil:
			c = &counted{Workspace: w}
			m.of[w.Cluster] = c
			m.push(c, false)
		case c.known:
			found[w.UUID] = c.use()
		}
	}
	return found
}

// count returns what is known of a Workspace, and has it measured if that is nothing. m.mu is locked.
func (m *Meter) count(w Workspace) *counted {
	c := m.of[w.Cluster]
	if c != nil {
		if c.queued && !c.known {
			m.enqueue(c)
		}
		return c
	}
	c = &counted{Workspace: w}
	m.of[w.Cluster] = c
	m.enqueue(c)
	// The Organization has a limit, too.
	for _, other := range m.config.Workspaces(w.Org) {
		if other.Cluster != "" && m.of[other.Cluster] == nil {
			m.of[other.Cluster] = &counted{Workspace: other}
			m.enqueue(m.of[other.Cluster])
		}
	}
	return c
}

// limit is a limit with what counts against it.
type limit struct {
	name, unit      string
	used, add, most int64
}

func (m *Meter) limits(used, add Use) []limit {
	most := m.config.Limits.Workspace
	return []limit{
		{"workspace_objects", "objects", used.Objects, add.Objects, most.Objects},
		{"workspace_bytes", "bytes", used.Bytes, add.Bytes, most.Bytes},
		{"workspace_definitions", "CustomResourceDefinitions", used.Definitions, add.Definitions, most.Definitions},
		{"workspace_bindings", "APIBindings", used.Bindings, add.Bindings, most.Bindings},
	}
}

// exceeds returns the limit of which a Use is more than the allowance, or nil.
func (m *Meter) exceeds(u Use) *limit {
	for _, l := range m.limits(u, Use{}) {
		if l.most > 0 && l.used > max(l.most/allowance, 1) {
			return &l
		}
	}
	return nil
}

func (m *Meter) judge(c *counted, more Use) error {
	if !c.known {
		if m.exceeds(c.grown.plus(more)) == nil {
			return nil
		}
		e := errs.New(errs.Unavailable, "what the workspace stores is being measured; try again in a moment")
		e.RetryAfter = retryUnmeasured
		return e
	}
	for _, l := range m.limits(c.use(), more) {
		if l.add > 0 && l.most > 0 && l.used+l.add > l.most {
			return m.refuse(l, "this workspace")
		}
	}
	if most := m.config.Limits.OrgBytes; more.Bytes > 0 && most > 0 {
		if l := (limit{"org_bytes", "bytes", m.orgBytes(c.Org), more.Bytes, most}); l.used+l.add > l.most {
			return m.refuse(l, "this organization")
		}
	}
	return nil
}

// orgBytes adds up the Workspaces of an Organization.
func (m *Meter) orgBytes(org string) (sum int64) {
	for _, w := range m.config.Workspaces(org) {
		if c := m.of[w.Cluster]; c != nil {
			sum += c.use().Bytes
		}
	}
	return sum
}

func (m *Meter) refuse(l limit, who string) error {
	m.refused.WithLabelValues(l.name).Inc()
	used, most := fmt.Sprint(l.used), fmt.Sprint(l.most)
	if l.unit == "bytes" {
		used, most = inMebibytes(l.used), inMebibytes(l.most)
	}
	return errs.New(errs.InsufficientStorage,
		fmt.Sprintf("%s stores %s of %s %s; delete what you do not need, or ask a platform admin. What is deleted counts as free within two minutes",
			who, used, most, l.unit),
		errs.Cause{Type: "QuotaExceeded", Message: fmt.Sprintf("%s: used: %s, limit: %s", l.unit, used, most)})
}

// inMebibytes is a size as people read it.
func inMebibytes(bytes int64) string {
	return resource.NewQuantity((bytes+1<<20-1)>>20<<20, resource.BinarySI).String()
}

// enqueue has a Workspace measured, soon if it never was. m.mu is locked.
func (m *Meter) enqueue(c *counted) { m.push(c, !c.known) }

func (m *Meter) push(c *counted, urgent bool) {
	wait := max(pause, duty*c.took)
	if c.known && m.full(c) {
		// Its tenant may wait for room, also where kcp is slow.
		wait = min(max(pause, dutyFull*c.took), waitFull)
	}
	if c.queued && (c.urgent || !urgent) || !c.at.IsZero() && m.config.Clock.Since(c.at) < wait {
		return
	}
	c.queued, c.urgent = true, urgent
	m.queue.Push(c.Cluster, c.Org, urgent)
	select {
	case m.filled <- struct{}{}:
	default:
	}
}

// Run measures until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	ticker := m.config.Clock.NewTicker(lookForStale)
	defer ticker.Stop()
	for {
		for m.measureNext(ctx) && ctx.Err() == nil {
		}
		select {
		case <-ctx.Done():
			return
		case <-m.filled:
		case <-ticker.C():
			m.enqueueStale()
		}
	}
}

// enqueueStale has old measurements made again, and forgets Workspaces that are gone.
func (m *Meter) enqueueStale() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for cluster, c := range m.of {
		switch {
		case !m.exists(c):
			delete(m.of, cluster)
		case m.config.Clock.Since(c.at) > stale || m.full(c) || c.incomplete && m.config.Clock.Since(c.at) > retryUnread:
			m.push(c, false)
		}
	}
}

// full reports whether a Workspace has nearly reached a limit.
func (m *Meter) full(c *counted) bool {
	for _, l := range m.limits(c.use(), Use{}) {
		if l.most > 0 && l.used >= l.most-l.most/allowance {
			return true
		}
	}
	return m.config.Limits.OrgBytes > 0 && m.orgBytes(c.Org) >= m.config.Limits.OrgBytes-m.config.Limits.OrgBytes/allowance
}

func (m *Meter) exists(c *counted) bool {
	for _, w := range m.config.Workspaces(c.Org) {
		if w.Cluster == c.Cluster {
			return true
		}
	}
	return false
}

// measureNext measures the next Workspace in line. It returns false if there is none.
func (m *Meter) measureNext(ctx context.Context) bool {
	m.mu.Lock()
	cluster, _, ok := m.queue.Pop()
	c := m.of[cluster]
	if !ok || c == nil || !c.queued {
		// It can be in the queue twice.
		m.mu.Unlock()
		return ok
	}
	c.queued, c.at = false, m.config.Clock.Now()
	if !m.exists(c) {
		delete(m.of, cluster)
		m.mu.Unlock()
		return true
	}
	before := c.grown
	m.mu.Unlock()

	measuring, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	reading, err := m.config.Measure(measuring, cluster)

	m.mu.Lock()
	defer m.mu.Unlock()
	c.took = m.config.Clock.Since(c.at)
	m.duration.Observe(c.took.Seconds())
	c.incomplete = err != nil || len(reading.Unread) > 0
	if err != nil {
		log.From(ctx).Info("what a workspace stores could not be measured, so its last count stays", zap.String("workspace", c.UUID), zap.Error(err))
		return true
	}
	if c.incomplete {
		log.From(ctx).Info("a resource of a workspace could not be read, so its last count stays",
			zap.String("workspace", c.UUID), zap.Strings("resources", reading.Unread))
	}
	// What was admitted meanwhile may have been read or not, so it counts.
	c.take(reading)
	c.known, c.grown = true, c.grown.minus(before)
	return true
}

// take makes a reading the measurement. A resource that could not be read keeps its last count.
func (c *counted) take(r Reading) {
	unread := func(resource string) bool {
		return slices.ContainsFunc(r.Unread, func(name string) bool {
			return resource == name || strings.HasSuffix(name, "/") && strings.HasPrefix(resource, name)
		})
	}
	of := map[string]Use{}
	for resource, use := range c.of {
		if unread(resource) {
			of[resource] = use
		}
	}
	for resource, use := range r.ByResource {
		if use != (Use{}) {
			of[resource] = use
		}
	}
	c.of, c.measured = of, Use{}
	for _, use := range of {
		c.measured = c.measured.plus(use)
	}
}
