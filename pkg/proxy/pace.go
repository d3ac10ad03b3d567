package proxy

import (
	"context"

	"golang.org/x/time/rate"
)

const (
	// paceRate is the number of bytes of a large answer that the hub takes from kcp in a second. kcp sent 200 MB of lists in
	// that time before: a core of it is busy for a sixth of the time, and not for as long as the list takes.
	paceRate = 32 << 20
	// paceBurst is what comes at once.
	paceBurst = 256 << 10
	// paced is the part of the time for reading an answer in which one of the expected size comes.
	paced = 4
)

// pace bounds the rate at which kcp sends an answer that is larger than a light one. kcp encodes a list while it sends it, so
// that a reader who takes it slowly leaves the core to others. The hub does not keep what it has not taken.
type pace struct {
	ctx     context.Context //nolint:containedctx // it is that of the request
	limiter *rate.Limiter
	got     int64
}

// pace returns that of an admitted request, or nil for none.
func (l *load) pace(ctx context.Context, a admission) *pace {
	if l.org == nil {
		return nil
	}
	perSecond := max(paceRate, paced*float64(a.bytes)/l.limits.Time.Seconds())
	return &pace{ctx: ctx, limiter: rate.NewLimiter(rate.Limit(perSecond), paceBurst)}
}

// took counts what kcp has sent, and waits until more may come.
func (p *pace) took(n int) error {
	if p == nil {
		return nil
	}
	if p.got += int64(n); p.got <= light {
		return nil
	}
	for n > 0 {
		part := min(n, paceBurst)
		if err := p.limiter.WaitN(p.ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
