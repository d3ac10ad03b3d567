package meter

// Weigh returns what a Workspace stores at least, as Read does, also where more of it was seen.
func (m *Meter) Weigh(w Workspace) (objects, bytes int64, ok bool) {
	use, _, ok := m.Read(w)
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of[w.Cluster]
	if c == nil || c.seen == 0 {
		return use.Objects, use.Bytes, ok
	}
	m.push(c, true)
	return use.Objects, max(use.Bytes, c.seen), true
}

// Larger tells that so many bytes of a Workspace were seen. Where that is more than is known, because another replica let
// them in or because they grew past the proxy, the Workspace weighs as much until it is measured, and that is soon.
func (m *Meter) Larger(w Workspace, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.of[w.Cluster]; c != nil && bytes > c.use().Bytes {
		c.seen = max(c.seen, bytes)
		m.push(c, true)
	}
}
