package bots

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// maxRefusals is the number of Bots whose refusals wait to be written. Those of others are
	// dropped.
	maxRefusals = 1024
	// refusalsEvery is the interval at which they are written.
	refusalsEvery = time.Second
	// refusalTimeout limits the time of one write.
	refusalTimeout = 5 * time.Second
)

// Refusals writes the refusals of jobs into the status of Bots off the path of requests, at most once a
// second for each Bot.
type Refusals struct {
	bots  Changer
	clock clock.WithTicker

	mu      sync.Mutex
	pending map[string]refusal
}

// refusal is the last refusal of jobs by the rules of a Bot.
type refusal struct {
	bot    *v1alpha1.Bot
	claims map[string]string
	at     time.Time
}

// NewRefusals returns Refusals that write to bots.
func NewRefusals(bots Changer, k clock.WithTicker) *Refusals {
	return &Refusals{bots: bots, clock: k, pending: map[string]refusal{}}
}

// Record has a refusal written. It does not block.
func (f *Refusals) Record(b *v1alpha1.Bot, claims map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.pending[b.Name]; ok || len(f.pending) < maxRefusals {
		f.pending[b.Name] = refusal{bot: b, claims: claims, at: f.clock.Now()}
	}
}

// Run writes what is recorded until ctx ends.
func (f *Refusals) Run(ctx context.Context) {
	ticker := f.clock.NewTicker(refusalsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		f.mu.Lock()
		pending := f.pending
		f.pending = map[string]refusal{}
		f.mu.Unlock()
		for _, r := range pending {
			f.write(ctx, r)
		}
	}
}

func (f *Refusals) write(ctx context.Context, r refusal) {
	ctx, cancel := context.WithTimeout(ctx, refusalTimeout)
	defer cancel()
	_, err := f.bots.ChangeBot(ctx, r.bot, nil, func(_ context.Context, b *v1alpha1.Bot) error {
		tenancy.RecordRefusal(b, r.claims, r.at)
		return nil
	})
	if err != nil {
		log.From(ctx).Debug("the refusal of a job could not be written", zap.String("bot", r.bot.Name), zap.Error(err))
	}
}
