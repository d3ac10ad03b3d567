package spare

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

// stuck is the time after which nothing waits any more for a workspace that is not finished.
const stuck = time.Minute

// pending are the workspaces that are being made.
type pending struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	since   map[controller.Key]time.Time
	waiting map[controller.Key]bool
}

func newPending(c clock.PassiveClock) *pending {
	return &pending{clock: c, since: map[controller.Key]time.Time{}, waiting: map[controller.Key]bool{}}
}

// note records whether a workspace is being made, and returns the keys that waited for the last one. begins is true if
// its making may begin now: a finished one that its tenants damage, or one that took too long, is not waited for again.
func (p *pending) note(key controller.Key, making, begins bool) (free []controller.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if making {
		if _, ok := p.since[key]; !ok && begins {
			p.since[key] = p.clock.Now()
		}
		return nil
	}
	delete(p.since, key)
	if len(p.since) > 0 {
		return nil
	}
	for key := range p.waiting {
		free = append(free, key)
	}
	clear(p.waiting)
	return free
}

// any reports whether a workspace is being made. It forgets those that take too long.
func (p *pending) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, since := range p.since {
		if p.clock.Since(since) > stuck {
			delete(p.since, key)
		}
	}
	return len(p.since) > 0
}

// wait has note return the key.
func (p *pending) wait(key controller.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[key] = true
}
