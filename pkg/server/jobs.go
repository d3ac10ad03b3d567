package server

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/store"
)

const (
	// exchangeTimeout limits the time in which a job gets a token of a bot.
	exchangeTimeout = 30 * time.Second
	// forgetJobsEvery is the interval at which records of used ID tokens of jobs are removed, and
	// forgetJobsAfter the time after the expiry of a token at which its record is: no clock is that slow.
	forgetJobsEvery, forgetJobsAfter = 10 * time.Minute, 10 * time.Minute
)

// exchange returns what gives tokens of Bots to jobs.
func (a *assembly) exchange(s *store.Store, tokens store.BotTokens, counted *bots.Metrics) *bots.Exchange {
	c := a.hub.config
	a.refusals = bots.NewRefusals(a.sparing(s), c.Clock)
	return &bots.Exchange{
		Views: a.views, Store: s, Used: s, Tokens: tokens, Audit: a.auditor.Record, Refused: a.refusals.Record, Metrics: counted,
		Room:    func() error { return a.hub.storage.Admit(storage.Growth) },
		NewUUID: uuid.NewString, Clock: transport.Current(a.clock), ExternalURL: c.ExternalURL,
		WriteTimeout: exchangeTimeout, FollowTimeout: c.FollowTimeout,
	}
}

// forgetJobs removes the records of used ID tokens of jobs a while after the tokens have expired, until ctx
// ends.
func (a *assembly) forgetJobs(ctx context.Context) {
	for ctx.Err() == nil {
		if err := a.forgetSubjectTokens(ctx, a.clock.Now().Add(-forgetJobsAfter)); err != nil {
			log.From(ctx).Debug("the records of used ID tokens of jobs were not removed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-a.hub.config.Clock.After(forgetJobsEvery):
		}
	}
}
