package meter

// Weigh returns what a Workspace stores at least: what Read returns, or what Larger was told since the last measurement.
func (m *Meter) Weigh(w Workspace) (objects, bytes int64, ok bool) {
	use, _, ok := m.Read(w)
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of[w.Cluster]
	if c == nil || c.lowerBound == 0 {
		return use.Objects, use.Bytes, ok
	}
	m.push(c, false)
	return use.Objects, max(use.Bytes, c.lowerBound), true
}

// Larger records that an answer had so many bytes of a Workspace. The meter knows of fewer where another replica let them in,
// or where they grew past the proxy. The Workspace then weighs as much until it is measured, which this causes.
func (m *Meter) Larger(w Workspace, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.of[w.Cluster]; c != nil && bytes > c.use().Bytes {
		c.lowerBound = max(c.lowerBound, bytes)
		m.push(c, false)
	}
}
