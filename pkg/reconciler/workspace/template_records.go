package workspace

import (
	"sync"
	"time"
)

// records have what was applied in each logical cluster, so that the reconciliation of
// a complete Workspace writes nothing. A new process applies everything again.
type records struct {
	mu       sync.Mutex
	clusters map[string]*applied
}

// applied is the record of one logical cluster.
type applied struct {
	at time.Time
	// bound identifies the APIBindings at that time.
	bound string
}

// pass is the record of a logical cluster at the start of a reconciliation.
type pass struct {
	due   bool
	bound string
}

func (m *records) begin(cluster string, now time.Time, forced bool) pass {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.clusters[cluster]
	if a == nil {
		a = &applied{}
		m.clusters[cluster] = a
	}
	if forced {
		a.at = time.Time{}
	}
	return pass{due: a.at.IsZero() || now.Sub(a.at) >= reapply, bound: a.bound}
}

// done records that everything is applied.
func (m *records) done(cluster, bound string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.clusters[cluster]; a != nil {
		a.at, a.bound = now, bound
	}
}

// Forget removes the record of a deleted logical cluster.
func (t *Template) Forget(cluster string) {
	t.records.mu.Lock()
	defer t.records.mu.Unlock()
	delete(t.records.clusters, cluster)
}
