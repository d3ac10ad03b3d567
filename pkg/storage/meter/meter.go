package meter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/fairqueue"
)

const (
	// allowance is the share of a limit by which all replicas together may pass it: one part in so many.
	// replicas is the number of them that is assumed.
	allowance, replicas = 20, 4
	// pause is the shortest time between two measurements of a Workspace, and duty how many times as
	// long as the last one took it is at least; dutyShort is that of a Workspace for which somebody waits.
	pause, duty, dutyShort = 2 * time.Second, 20, 4
	// waitFull is the longest time between two measurements of a Workspace at a limit.
	waitFull = time.Minute
	// stale is the age at which a measurement is made again without a request.
	stale = time.Hour
	// retryUnread is the age at which an incomplete measurement is.
	retryUnread = 5 * time.Minute
	// measureTimeout limits one measurement.
	measureTimeout = 5 * time.Minute
	// maxHeld is the longest time that a request waits for a measurement, and retryHeld the Retry-After
	// behind that.
	maxHeld, retryHeld = 15 * time.Second, 2 * time.Second
	// lookForStale is the interval at which old measurements are looked for.
	lookForStale = 30 * time.Second
)

// Workspace is what is measured.
type Workspace struct{ Org, UUID, Cluster string }

// Use is what a Workspace stores, or what a request adds. Definitions are CustomResourceDefinitions,
// Bindings are APIBindings, and Roles are Roles, ClusterRoles and Namespaces.
type Use struct{ Objects, Bytes, Definitions, Bindings, Roles int64 }

func (u Use) plus(v Use) Use {
	return Use{u.Objects + v.Objects, u.Bytes + v.Bytes, u.Definitions + v.Definitions, u.Bindings + v.Bindings, u.Roles + v.Roles}
}

func (u Use) minus(v Use) Use {
	return u.plus(Use{-v.Objects, -v.Bytes, -v.Definitions, -v.Bindings, -v.Roles})
}

// Limits are the most that a Workspace may store, and the most bytes of an Organization. 0 is no limit.
type Limits struct {
	Workspace Use
	OrgBytes  int64
}

// Growth is what a request may add to a Workspace.
type Growth struct {
	Use
	// Resource is the "group/resource" to which it is added.
	Resource string
	// Mends is true for a change of a definition, which can make its objects readable.
	Mends bool
	// Update is true for a request that may do no more than change an object. Bytes are the size of its
	// body then, all of which the object may have had before.
	Update bool
}

// Outcome is what became of an admitted request.
type Outcome int

// The outcomes. Unknown is that of a request without an answer, or with one that says nothing.
const (
	Unknown Outcome = iota
	Refused
	Changed
	Created
)

// Reading is what a measurement finds, by resource. Unread are the resources that cannot be read at the
// moment; one that ends in a slash stands for all that begin so. Owned are those of the Workspace's own definitions, and
// Bound those of others that exist, read or not.
type Reading struct {
	ByResource           map[string]Use
	Unread, Owned, Bound []string
}

// Config is the configuration of a Meter.
type Config struct {
	// Limits returns those of an Organization.
	Limits func(org string) Limits
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
	// of has the Workspaces that have grown, by logical cluster, and orgs by Organization.
	of    map[string]*counted
	orgs  map[string]map[*counted]bool
	queue fairqueue.Queue[string, string]
	// filled is signalled when the queue has something.
	filled chan struct{}
}

// counted is what is known of a Workspace.
type counted struct {
	Workspace
	// measured is the last measurement, which began at measuredAt. known is false before the first. of has it by
	// resource: what is not empty, what is unread, and what the Workspace defines itself.
	measured   Use
	of         map[string]stored
	known      bool
	measuredAt time.Time
	// hidden are resources that the Workspace defines itself, and of which nobody knows what it stores.
	hidden []string
	// at is when the last attempt at a measurement began, and took is how long it took. failed is true if
	// nothing was read, and incomplete if not everything was. ended is closed when the next attempt ends.
	at                 time.Time
	took               time.Duration
	failed, incomplete bool
	ended              chan struct{}
	// grown was added since the last measurement began, and by is the same by resource. admitted is what requests
	// without an answer may add, and updating are the bytes in the bodies of updates without one.
	grown    growth
	by       map[string]growth
	admitted Use
	updating int64
	// lowerBound is the largest size that an answer had since the last measurement, where that is more than was known.
	lowerBound int64
	// queued is true while it waits for a measurement, urgent if somebody needs that soon.
	queued, urgent bool
}

// growth is what was added since a measurement began. updated are the bytes in the bodies of updates, an upper bound of
// what they added.
type growth struct {
	Use
	updated int64
}

// stored is what is known of a resource. stale is true if the last measurement could not read it, and read if any has:
// else Use is what was added since this replica knows the Workspace, and what was before is not known.
type stored struct {
	Use
	read, stale bool
}

func (c *counted) use() Use { return c.measured.plus(c.grown.Use).plus(c.admitted) }

// since is the most that was added since the last measurement began.
func (c *counted) since() Use {
	u := c.grown.plus(c.admitted)
	u.Bytes += c.grown.updated + c.updating
	return u
}

// grow adds to what a resource has grown, or takes it away if times is -1.
func (c *counted) grow(resource string, g growth, times int64) {
	add := func(to growth) growth {
		if times < 0 {
			return growth{to.minus(g.Use), to.updated - g.updated}
		}
		return growth{to.plus(g.Use), to.updated + g.updated}
	}
	c.grown = add(c.grown)
	if c.by[resource] = add(c.by[resource]); c.by[resource] == (growth{}) {
		delete(c.by, resource)
	}
}

// stale returns the entry of a resource that the last measurement could not read. ok is false if it could.
func (c *counted) stale(resource string) (entry string, ok bool) {
	group, _, _ := strings.Cut(resource, "/")
	for _, entry := range []string{resource, group + "/"} {
		if c.of[entry].stale {
			return entry, true
		}
	}
	return "", false
}

// New returns a Meter. It registers kedge_storage_tenant_*.
func New(c Config) (*Meter, error) {
	m := &Meter{
		config: c, of: map[string]*counted{}, orgs: map[string]map[*counted]bool{}, filled: make(chan struct{}, 1),
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

// Admit counts what a request may add to a Workspace. It waits for a measurement where this replica has let
// through so much that others may not know of. settle says what became of the request. An error
// refuses it, and then nothing is counted; an Update does not wait, and its error says no more than that it
// must be weighed.
func (m *Meter) Admit(ctx context.Context, w Workspace, g Growth) (settle func(Outcome), err error) {
	var end clock.Timer
	defer func() {
		if end != nil {
			end.Stop()
		}
	}()
	for {
		m.mu.Lock()
		c := m.count(w)
		err := m.judge(c, g)
		held := errs.Is(err, errs.Unavailable)
		in := m.measureFor(c, g, err)
		if err == nil {
			c.admit(g, 1)
		}
		ended, failed := c.ended, c.failed
		m.mu.Unlock()
		switch {
		case err == nil:
			return func(o Outcome) { m.settle(c, g, o) }, nil
		case !held || g.Update || end != nil && failed:
			return nil, err
		case end == nil:
			end = m.config.Clock.NewTimer(maxHeld)
		}
		var soon <-chan time.Time
		if in > 0 {
			soon = m.config.Clock.After(in)
		}
		select {
		case <-ended:
		case <-soon:
		case <-end.C():
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

// admit adds what a request may add, or takes it away if times is -1.
func (c *counted) admit(g Growth, times int64) {
	if g.Update {
		c.updating += times * g.Bytes
		g.Bytes = 0
	}
	if times < 0 {
		c.admitted = c.admitted.minus(g.Use)
		return
	}
	c.admitted = c.admitted.plus(g.Use)
}

func (m *Meter) settle(c *counted, g Growth, o Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.admit(g, -1)
	switch {
	case o == Refused:
		return
	case g.Update && o == Changed:
		c.grow(g.Resource, growth{updated: g.Bytes}, 1)
		return
	case g.Update && o == Unknown:
		c.grow(g.Resource, growth{updated: g.Bytes}, 1)
		g.Bytes = 0
	}
	c.grow(g.Resource, growth{Use: g.Use}, 1)
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
	return c.use(), m.ofOrg(w.Org).used, c.known
}

// OrgBytes returns what all Workspaces of an Organization store. ok is false until all of them were measured, which
// it has done.
func (m *Meter) OrgBytes(org string) (used int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.orgs[org]) == 0 {
		all := m.config.Workspaces(org)
		for _, w := range all {
			if w.Cluster != "" {
				m.push(m.add(w), false)
			}
		}
		return 0, len(all) == 0
	}
	for c := range m.orgs[org] {
		if !c.known {
			return 0, false
		}
	}
	return m.ofOrg(org).used, true
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
			m.push(m.add(w), false)
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
			m.push(c, true)
		}
		return c
	}
	c = m.add(w)
	m.push(c, true)
	// The Organization has a limit, too.
	for _, other := range m.config.Workspaces(w.Org) {
		if other.Cluster != "" && m.of[other.Cluster] == nil {
			m.push(m.add(other), true)
		}
	}
	return c
}

func (m *Meter) add(w Workspace) *counted {
	c := &counted{Workspace: w, by: map[string]growth{}, ended: make(chan struct{})}
	m.of[w.Cluster] = c
	if m.orgs[w.Org] == nil {
		m.orgs[w.Org] = map[*counted]bool{}
	}
	m.orgs[w.Org][c] = true
	return c
}

func (m *Meter) forget(c *counted) {
	delete(m.of, c.Cluster)
	delete(m.orgs[c.Org], c)
	if len(m.orgs[c.Org]) == 0 {
		delete(m.orgs, c.Org)
	}
}
