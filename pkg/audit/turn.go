package audit

import (
	"errors"
	"sync/atomic"
	"time"
)

// patience is how long an event waits for a disk that does not answer.
const patience = 10 * time.Second

var errHangs = errors.New("its disk does not answer")

// turn is a lock for those who write. Nobody waits for it longer than a disk may take for one event: while the disk hangs,
// those who come later are refused at once.
type turn struct {
	taken chan struct{}
	// since is when the present writer got its turn. It is nil while there is none.
	since atomic.Pointer[time.Time]
}

func newTurn() *turn { return &turn{taken: make(chan struct{}, 1)} }

// try takes the turn if nobody has it.
func (t *turn) try() bool {
	select {
	case t.taken <- struct{}{}:
		t.begin()
		return true
	default:
		return false
	}
}

func (t *turn) begin() {
	now := time.Now()
	t.since.Store(&now)
}

// take waits for the turn. It reports false if one writer has it for longer than patience.
func (t *turn) take() bool {
	for !t.try() {
		since, left := t.since.Load(), patience
		if since != nil {
			left -= time.Since(*since)
		}
		timer := time.NewTimer(left)
		select {
		case t.taken <- struct{}{}:
			timer.Stop()
			t.begin()
			return true
		case <-timer.C:
			if since != nil && t.since.Load() == since {
				return false
			}
		}
	}
	return true
}

func (t *turn) release() {
	t.since.Store(nil)
	<-t.taken
}
