package server

import (
	"context"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// presence is of what must be there for anything to be answered or written: kcp, and
// memory that follows it.
type presence []*transport.Health

// err is nil while all of it is there, and what a caller is told otherwise.
func (p presence) err() error {
	for _, health := range p {
		if err := health.Err(); err != nil {
			return err
		}
	}
	return nil
}

// onGone has f called whenever any of it goes.
func (p presence) onGone(f func()) {
	for _, health := range p {
		health.OnUnavailable(f)
	}
}

// present lets nobody through while kcp is gone, whatever memory could answer: who
// may do what is not known any more.
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

// entering is the gate of streams that are open, too: they end when kcp goes.
func entering(p presence, gate tenancy.Gate) func(user, cluster string) (tenancy.Entry, error) {
	return func(user, cluster string) (tenancy.Entry, error) {
		if err := p.err(); err != nil {
			return tenancy.Entry{}, err
		}
		return gate.Enter(user, cluster)
	}
}

// whilePresent runs something as long as kcp is there, and anew when it comes back:
// what failed meanwhile would be tried again ever more rarely, and what is not in
// memory is not gone.
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

// latest is the time that the grace of a deletion begins by.
func latest(c clock.WithTicker) clock.PassiveClock {
	if k, ok := c.(*transport.Clock); ok {
		return k.Latest()
	}
	return c
}
