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
	// maxUses is the number of Bots with uses of tokens that wait to be written. Those of others are
	// dropped: their next request records them again.
	maxUses = 4096
	// usesEvery is the interval at which they are written: the first use of a token is shown within 15
	// seconds.
	usesEvery = 10 * time.Second
	// useTimeout limits the time of one write.
	useTimeout = 5 * time.Second
)

// Uses writes the last uses of tokens into the status of Bots off the path of requests: all of a Bot in one
// write, and of a token at most one in an hour.
type Uses struct {
	bots  Changer
	clock clock.WithTicker

	mu      sync.Mutex
	pending map[string]uses
}

// uses are those of the tokens of a Bot, by the ID of the token.
type uses struct {
	bot *v1alpha1.Bot
	at  map[string]time.Time
}

// NewUses returns Uses that write to bots.
func NewUses(bots Changer, k clock.WithTicker) *Uses {
	return &Uses{bots: bots, clock: k, pending: map[string]uses{}}
}

// Record has the use of a token written. It does not block.
func (u *Uses) Record(b *v1alpha1.Bot, token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of, ok := u.pending[b.Name]
	if !ok {
		if len(u.pending) >= maxUses {
			return
		}
		of = uses{bot: b, at: map[string]time.Time{}}
		u.pending[b.Name] = of
	}
	if _, ok := of.at[token]; !ok {
		of.at[token] = u.clock.Now()
	}
}

// Run writes what is recorded until ctx ends.
func (u *Uses) Run(ctx context.Context) {
	ticker := u.clock.NewTicker(usesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		u.mu.Lock()
		pending := u.pending
		u.pending = map[string]uses{}
		u.mu.Unlock()
		for _, of := range pending {
			u.write(ctx, of)
		}
	}
}

func (u *Uses) write(ctx context.Context, of uses) {
	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	_, err := u.bots.ChangeBot(ctx, of.bot, nil, func(_ context.Context, b *v1alpha1.Bot) error {
		tenancy.RecordTokenUses(b, of.at)
		return nil
	})
	if err != nil {
		log.From(ctx).Debug("the uses of tokens could not be written", zap.String("bot", of.bot.Name), zap.Error(err))
	}
}
