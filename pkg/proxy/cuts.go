package proxy

import (
	"slices"
	"sync"
)

// cuts counts the streams that end because a right or a credential ended, for those who ask. The zero value
// is ready.
type cuts struct {
	mu sync.Mutex
	// open are the counters by the key of the caller whose streams they count.
	open map[string][]*counter
}

// counter counts the streams in an Organization, or in all of them if org is empty.
type counter struct {
	org string
	n   int
}

// count counts a stream if it was cut.
func (c *cuts) count(s *stream, cut bool) {
	if !cut {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.open[s.key.user] {
		if of.org == "" || of.org == s.org() {
			of.n++
		}
	}
}

// CountCut counts the streams of a caller that are terminated from now on because their right or their
// credential ended: those in an Organization, whose admins learn nothing of others, or all if org is empty. The
// caller must call taken, which ends the count and returns it; it returns the same again.
func (p *Proxy) CountCut(user, org string) (taken func() int) {
	c, n := &p.cuts, &counter{org: org}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string][]*counter{}
	}
	c.open[user] = append(c.open[user], n)
	return func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if left := slices.DeleteFunc(c.open[user], func(each *counter) bool { return each == n }); len(left) > 0 {
			c.open[user] = left
		} else {
			delete(c.open, user)
		}
		return n.n
	}
}
