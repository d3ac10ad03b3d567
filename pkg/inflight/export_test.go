package inflight

// Keys returns the number of keys that have work in progress or that waits.
func (r *Rooms) Keys() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of)
}
