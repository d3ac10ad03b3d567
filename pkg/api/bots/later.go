package bots

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// laterTimeout limits the time of one write.
const laterTimeout = 5 * time.Second

// later writes into the status of Bots off the path of requests: what is recorded of a Bot in an interval
// is one write.
type later[T any] struct {
	bots  Changer
	clock clock.WithTicker
	every time.Duration
	// most is the number of Bots that wait. What is recorded of others is dropped.
	most int
	// what is the name of what is written, in the log.
	what  string
	apply func(b *v1alpha1.Bot, recorded T)

	mu      sync.Mutex
	pending map[string]waiting[T]
}

// waiting is what is recorded of a Bot.
type waiting[T any] struct {
	bot      *v1alpha1.Bot
	recorded T
}

// record changes what is recorded of a Bot, which is the zero value if nothing is. It does not block.
func (l *later[T]) record(b *v1alpha1.Bot, change func(recorded T) T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, ok := l.pending[b.Name]
	if !ok && len(l.pending) >= l.most {
		return
	}
	if l.pending == nil {
		l.pending = map[string]waiting[T]{}
	}
	l.pending[b.Name] = waiting[T]{bot: b, recorded: change(of.recorded)}
}

// Run writes what is recorded until ctx ends.
func (l *later[T]) Run(ctx context.Context) {
	ticker := l.clock.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		l.mu.Lock()
		pending := l.pending
		l.pending = nil
		l.mu.Unlock()
		for _, of := range pending {
			l.write(ctx, of)
		}
	}
}

func (l *later[T]) write(ctx context.Context, of waiting[T]) {
	ctx, cancel := context.WithTimeout(ctx, laterTimeout)
	defer cancel()
	_, err := l.bots.ChangeBot(ctx, of.bot, nil, func(_ context.Context, b *v1alpha1.Bot) error {
		l.apply(b, of.recorded)
		return nil
	})
	if err != nil {
		log.From(ctx).Debug(l.what+" could not be written", zap.String("bot", of.bot.Name), zap.Error(err))
	}
}
