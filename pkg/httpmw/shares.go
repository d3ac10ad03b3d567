package httpmw

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// shareWindow is the time in which the requests of a network are counted.
const shareWindow = burstSeconds * time.Second

// shares divide a rate among the networks that ask. In each window of ten seconds all sites, which are
// IPv4 addresses or IPv6 /48s, have equal parts, and so have the /64s of a site. A new network has
// a part at once: a flood from some networks uses up the parts of these networks.
type shares struct {
	// total is the number of requests in a window. Zero means no limit.
	total   int
	clock   clock.PassiveClock
	refused prometheus.Counter

	mu    sync.Mutex
	began time.Time
	// now and before have the requests of the current window and of the one before. The number of
	// networks in them is at most total in each level, so that a flood does not fill the memory.
	now, before *share
}

// share is what was taken by a network, or by the networks in it.
type share struct {
	taken int
	parts map[netip.Addr]*share
}

func (l *Limits) shares(limit string, perSecond float64) *shares {
	return &shares{
		total: int(math.Ceil(perSecond * burstSeconds)), clock: l.clock, refused: l.refused.WithLabelValues(limit),
		began: l.clock.Now(), now: &share{}, before: &share{},
	}
}

// take takes one request out of the share of a peer. A refused request takes nothing.
func (s *shares) take(peer netip.Addr) error {
	if s.total == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := s.turn()
	share, before, allowed := s.now, s.before, s.total
	for _, n := range []netip.Addr{site(peer), network(peer)} {
		part := share.parts[n]
		if part == nil {
			// A new site has room for a first network, so nothing is added that takes nothing.
			if len(share.parts) >= allowed {
				return tooMany(s.refused, shareWindow-elapsed)
			}
			part = share.add(n)
		}
		allowed = max(1, allowed/max(len(share.parts), before.size()))
		share, before = part, before.part(n)
	}
	if share.taken >= allowed {
		return tooMany(s.refused, shareWindow-elapsed)
	}
	share.taken++
	return nil
}

// turn begins a new window if the current one is over, and returns the time since its begin.
func (s *shares) turn() time.Duration {
	now := s.clock.Now()
	switch elapsed := now.Sub(s.began); {
	case elapsed >= 2*shareWindow:
		s.began, s.before, s.now = now, &share{}, &share{}
	case elapsed >= shareWindow:
		s.began, s.before, s.now = s.began.Add(shareWindow), s.now, &share{}
	}
	return now.Sub(s.began)
}

func (s *share) add(n netip.Addr) *share {
	if s.parts == nil {
		s.parts = map[netip.Addr]*share{}
	}
	part := &share{}
	s.parts[n] = part
	return part
}

// part returns the share of a network, or nil if it has none.
func (s *share) part(n netip.Addr) *share {
	if s == nil {
		return nil
	}
	return s.parts[n]
}

// size returns the number of networks.
func (s *share) size() int {
	if s == nil {
		return 0
	}
	return len(s.parts)
}

// site returns the network that one customer of a provider usually has: an IPv4 address, or the /48
// of an IPv6 address.
func site(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	// An IPv6 address has a prefix of 48 bits.
	p, _ := a.Prefix(48)
	return p.Addr()
}
