package meter

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// orgStale is the age at which the measurements of an Organization that grows are made again.
const orgStale = time.Minute

// measureFor has measured what a request needs, or the next ones will. in is the time until that may begin
// if it is not now. m.mu is locked.
func (m *Meter) measureFor(c *counted, g Growth, refusal error) (in time.Duration) {
	if most := m.config.Limits(c.Org).OrgBytes; most > 0 && m.ofOrg(c.Org).since > (limit{most: most}).share()/2 {
		orgFull := m.orgFull(c.Org)
		for other := range m.orgs[c.Org] {
			if other.known && (m.config.Clock.Since(other.measuredAt) > orgStale || refusal != nil && other.since().Bytes > 0) {
				m.pushIn(other, false, orgFull)
			}
		}
	}
	if refusal != nil {
		return m.push(c, !g.Update && errs.Is(refusal, errs.Unavailable))
	}
	for _, l := range m.limits(c, Use{}) {
		if l.since > l.share()/2 {
			return m.push(c, false)
		}
	}
	return 0
}

// push has a Workspace measured, before others if it is urgent, or returns the time until it may be.
func (m *Meter) push(c *counted, urgent bool) (in time.Duration) {
	return m.pushIn(c, urgent, m.orgFull(c.Org))
}

// pushIn is push with orgFull of its Organization.
func (m *Meter) pushIn(c *counted, urgent bool, orgFull func() bool) (in time.Duration) {
	if c.queued && (c.urgent || !urgent) {
		return 0
	}
	wait := max(pause, duty*c.took)
	if c.known && (urgent || m.full(c) || orgFull()) {
		// Its tenant may wait for room, also where kcp is slow.
		wait = min(max(pause, dutyShort*c.took), waitFull)
	}
	if in := wait - m.config.Clock.Since(c.at); !c.at.IsZero() && in > 0 {
		return in
	}
	c.queued, c.urgent = true, urgent
	m.queue.Push(c.Cluster, c.Org, urgent)
	select {
	case m.filled <- struct{}{}:
	default:
	}
	return 0
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
	orgs := slices.Collect(maps.Keys(m.orgs))
	m.mu.Unlock()
	for _, org := range orgs {
		m.enqueueStaleIn(org)
	}
}

// enqueueStaleIn is enqueueStale for an Organization. Requests wait for m.mu, so it is locked for no more than a pass over the
// Workspaces.
func (m *Meter) enqueueStaleIn(org string) {
	m.mu.Lock()
	all := slices.Collect(maps.Keys(m.orgs[org]))
	m.mu.Unlock()
	// Those that are counted from here on may be missing in the list.
	exist := map[string]bool{}
	for _, w := range m.config.Workspaces(org) {
		exist[w.Cluster] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	orgFull := m.orgFull(org)
	for _, c := range all {
		switch {
		case m.of[c.Cluster] != c:
			// It was forgotten meanwhile.
		case !exist[c.Cluster]:
			m.forget(c)
		case m.config.Clock.Since(c.at) > stale || m.full(c) || orgFull() || c.incomplete && m.config.Clock.Since(c.at) > retryUnread:
			m.pushIn(c, false, orgFull)
		}
	}
}

// full reports whether a Workspace has nearly reached a limit of its own.
func (m *Meter) full(c *counted) bool {
	for _, l := range m.limits(c, Use{}) {
		if l.used >= l.most-l.most/allowance {
			return true
		}
	}
	return false
}

// orgFull returns a func that reports whether an Organization has nearly reached its limit. It adds the Workspaces up once,
// and only if it is called. m.mu is locked until then.
func (m *Meter) orgFull(org string) func() bool {
	return sync.OnceValue(func() bool {
		most := m.config.Limits(org).OrgBytes
		return most > 0 && m.ofOrg(org).used >= most-most/allowance
	})
}

func (m *Meter) exists(c *counted) bool {
	return slices.ContainsFunc(m.config.Workspaces(c.Org), func(w Workspace) bool { return w.Cluster == c.Cluster })
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
		m.forget(c)
		m.mu.Unlock()
		return true
	}
	before := maps.Clone(c.by)
	m.mu.Unlock()

	measuring, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	reading, err := m.config.Measure(measuring, cluster)

	m.mu.Lock()
	defer m.mu.Unlock()
	c.took = m.config.Clock.Since(c.at)
	m.duration.Observe(c.took.Seconds())
	c.failed = err != nil
	close(c.ended)
	c.ended = make(chan struct{})
	if err != nil {
		c.incomplete = true
		log.From(ctx).Info("what a workspace stores could not be measured, so its last count stays", zap.String("workspace", c.UUID), zap.Error(err))
		return true
	}
	// What was added meanwhile may have been read or not, so it counts.
	c.take(reading, before)
	c.known, c.measuredAt, c.lowerBound = true, c.at, 0
	if c.incomplete {
		log.From(ctx).Info("a resource of a workspace could not be read, so its last count stays",
			zap.String("workspace", c.UUID), zap.Strings("resources", c.unread()))
	}
	return true
}

// take makes a reading the measurement. before is what had grown when it began: a resource that could not be read keeps
// its last count and gets that, with all that updates have sent, so that nobody makes room by hiding what they add.
func (c *counted) take(r Reading, before map[string]growth) {
	was := c.of
	c.of, c.measured, c.hidden = map[string]stored{}, Use{}, nil
	owned := setOf(r.Owned)
	for resource, use := range r.ByResource {
		if use != (Use{}) || owned[resource] {
			c.of[resource] = stored{Use: use, read: true}
		}
	}
	for entry, s := range was {
		_, read := r.ByResource[entry]
		counts := s.Use != (Use{}) || owned[entry] || slices.Contains(r.Unread, entry)
		if !read && counts && r.has(entry) {
			s.stale = true
			c.of[entry] = s
		}
	}
	for _, entry := range slices.Concat(r.Unread, r.Owned) {
		if s, ok := c.of[entry]; !ok {
			c.of[entry] = stored{stale: true}
		} else if s.stale && !s.read && owned[entry] {
			// One that was made a moment ago is not in discovery yet.
			c.hidden = append(c.hidden, entry)
		}
	}
	for resource, g := range before {
		c.grow(resource, g, -1)
		if _, read := r.ByResource[resource]; read || !r.has(resource) {
			continue
		}
		entry, ok := c.stale(resource)
		if !ok {
			entry = resource
		}
		s := c.of[entry]
		g.Bytes += g.updated
		s.Use, s.stale = s.plus(g.Use), true
		c.of[entry] = s
	}
	for _, s := range c.of {
		c.measured = c.measured.plus(s.Use)
	}
	c.incomplete = len(c.unread()) > 0
}

// has reports whether a resource that was not read exists, as far as the reading knows.
func (r Reading) has(resource string) bool {
	return slices.Contains(r.Owned, resource) || slices.Contains(r.Bound, resource) ||
		slices.ContainsFunc(r.Unread, func(name string) bool {
			return resource == name || strings.HasSuffix(name, "/") && strings.HasPrefix(resource, name)
		})
}

// unread are the resources that the last measurement could not read.
func (c *counted) unread() (all []string) {
	for entry, s := range c.of {
		if s.stale {
			all = append(all, entry)
		}
	}
	slices.Sort(all)
	return all
}

func setOf(all []string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, one := range all {
		set[one] = true
	}
	return set
}
