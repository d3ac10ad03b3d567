package httpmw

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// maxUses is the number of Sessions whose uses wait to be written. More are dropped: the
	// next request records the use again.
	maxUses = 1024
	// useTimeout limits the time of one write.
	useTimeout = 10 * time.Second
)

// Uses writes the uses of Sessions off the path of requests, one at a time.
type Uses struct {
	touch func(ctx context.Context, session string) error
	queue chan string

	mu     sync.Mutex
	queued map[string]struct{}
}

// NewUses returns Uses that write with touch.
func NewUses(touch func(ctx context.Context, session string) error) *Uses {
	return &Uses{touch: touch, queue: make(chan string, maxUses), queued: map[string]struct{}{}}
}

// Record has the use of a Session written. It does not block.
func (u *Uses) Record(session string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.queued[session]; ok {
		return
	}
	select {
	case u.queue <- session:
		u.queued[session] = struct{}{}
	default:
	}
}

// Run writes what is recorded until ctx ends.
func (u *Uses) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case session := <-u.queue:
			u.write(ctx, session)
		}
	}
}

func (u *Uses) write(ctx context.Context, session string) {
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.queued, session)
	}()
	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	if err := u.touch(ctx, session); err != nil {
		log.From(ctx).Debug("the use of a session could not be written", zap.Error(err))
	}
}
