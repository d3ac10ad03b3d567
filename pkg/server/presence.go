package server

import (
	"context"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// presence reports whether the hub can answer and write: kcp is available and the caches are up to
// date.
type presence []*transport.Health

// err returns nil if so, and the error for clients otherwise.
func (p presence) err() error {
	for _, health := range p {
		if err := health.Err(); err != nil {
			return err
		}
	}
	return nil
}

// onGone calls f each time one of them is lost.
func (p presence) onGone(f func()) {
	for _, health := range p {
		health.OnUnavailable(f)
	}
}

// present refuses all requests while kcp is unavailable, also those that caches could answer: a
// right may be revoked meanwhile.
func present(p presence) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			for _, health := range p {
				if err := health.Wait(r.Context()); err != nil {
					return err
				}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// entering is the gate of the proxy. It is also evaluated for open streams, which end when kcp is
// unavailable.
func entering(p presence, gate tenancy.Gate) func(user, cluster string) (tenancy.Entry, error) {
	return func(user, cluster string) (tenancy.Entry, error) {
		if err := p.err(); err != nil {
			return tenancy.Entry{}, err
		}
		return gate.Enter(user, cluster)
	}
}

// whilePresent runs a func while kcp is available, and again when it is back. Controllers would
// otherwise back off further with every failure, and take objects that are missing in a cache for
// deleted.
func whilePresent(ctx context.Context, p presence, run func(context.Context)) {
	if len(p) == 0 {
		run(ctx)
		return
	}
	for {
		there, err := p[0].Await(ctx)
		if err != nil {
			return
		}
		running, stop := context.WithCancel(ctx)
		unbind := context.AfterFunc(there, stop)
		whilePresent(running, p[1:], run)
		unbind()
		stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// latest is the clock of the beginning of a grace period.
func latest(c clock.WithTicker) clock.PassiveClock {
	if k, ok := c.(*transport.Clock); ok {
		return k.Latest()
	}
	return c
}
