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

const (
	// laterTimeout limits the time of one write.
	laterTimeout = 5 * time.Second
	// laterTries is the number of writes after which what is recorded of a Bot is dropped.
	laterTries = 3
)

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
	// merge returns what is recorded of a Bot in all. It may change older.
	merge func(older, newer T) T

	mu      sync.Mutex
	pending map[string]waiting[T]
}

// waiting is what is recorded of a Bot.
type waiting[T any] struct {
	bot      *v1alpha1.Bot
	recorded T
	// tries is the number of writes that have failed.
	tries int
}

// record adds to what is recorded of a Bot. It does not block.
func (l *later[T]) record(b *v1alpha1.Bot, recorded T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, ok := l.pending[b.Name]
	if ok {
		recorded = l.merge(of.recorded, recorded)
	}
	l.hold(waiting[T]{bot: b, recorded: recorded, tries: of.tries})
}

// hold has what is recorded of a Bot written.
func (l *later[T]) hold(of waiting[T]) {
	if _, ok := l.pending[of.bot.Name]; !ok && len(l.pending) >= l.most {
		return
	}
	if l.pending == nil {
		l.pending = map[string]waiting[T]{}
	}
	l.pending[of.bot.Name] = of
}

// again has what could not be written written with what was recorded since.
func (l *later[T]) again(of waiting[T]) {
	if of.tries++; of.tries >= laterTries {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if newer, ok := l.pending[of.bot.Name]; ok {
		of.bot, of.recorded = newer.bot, l.merge(of.recorded, newer.recorded)
	}
	l.hold(of)
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
		l.again(of)
		log.From(ctx).Debug(l.what+" could not be written", zap.String("bot", of.bot.Name), zap.Error(err))
	}
}
