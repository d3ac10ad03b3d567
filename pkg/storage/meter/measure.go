package meter

import (
	"context"
	"slices"
	"strings"
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
		for other := range m.orgs[c.Org] {
			if other.known && (m.config.Clock.Since(other.measuredAt) > orgStale || refusal != nil && other.since().Bytes > 0) {
				m.push(other, false)
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
	wait := max(pause, duty*c.took)
	if c.known && (urgent || m.full(c)) {
		// Its tenant may wait for room, also where kcp is slow.
		wait = min(max(pause, dutyShort*c.took), waitFull)
	}
	if c.queued && (c.urgent || !urgent) {
		return 0
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
	defer m.mu.Unlock()
	for _, c := range m.of {
		switch {
		case !m.exists(c):
			m.forget(c)
		case m.config.Clock.Since(c.at) > stale || m.full(c) || c.incomplete && m.config.Clock.Since(c.at) > retryUnread:
			m.push(c, false)
		}
	}
}

// full reports whether a Workspace has nearly reached a limit.
func (m *Meter) full(c *counted) bool {
	for _, l := range m.limits(c, Use{}) {
		if l.used >= l.most-l.most/allowance {
			return true
		}
	}
	most := m.config.Limits(c.Org).OrgBytes
	return most > 0 && m.ofOrg(c.Org).used >= most-most/allowance
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
		m.forget(c)
		m.mu.Unlock()
		return true
	}
	before, updated := c.grown, c.updated
	m.mu.Unlock()

	measuring, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	reading, err := m.config.Measure(measuring, cluster)

	m.mu.Lock()
	defer m.mu.Unlock()
	c.took = m.config.Clock.Since(c.at)
	m.duration.Observe(c.took.Seconds())
	c.failed, c.incomplete = err != nil, err != nil || len(reading.Unread) > 0
	close(c.ended)
	c.ended = make(chan struct{})
	if err != nil {
		log.From(ctx).Info("what a workspace stores could not be measured, so its last count stays", zap.String("workspace", c.UUID), zap.Error(err))
		return true
	}
	if c.incomplete {
		log.From(ctx).Info("a resource of a workspace could not be read, so its last count stays",
			zap.String("workspace", c.UUID), zap.Strings("resources", reading.Unread))
	}
	// What was added meanwhile may have been read or not, so it counts.
	c.take(reading)
	c.known, c.measuredAt, c.grown, c.updated = true, c.at, c.grown.minus(before), c.updated-updated
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
