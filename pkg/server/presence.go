package server

import (
	"context"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// present lets nobody through while kcp is gone, whatever memory could answer: who
// may do what is not known any more.
func present(pulse *kcp.Pulse) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := pulse.Present(r.Context()); err != nil {
				return err
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// entering is the gate of streams that are open, too: they end when kcp goes.
func entering(pulse *kcp.Pulse, gate tenancy.Gate) func(user, cluster string) (tenancy.Entry, error) {
	return func(user, cluster string) (tenancy.Entry, error) {
		if err := pulse.Err(); err != nil {
			return tenancy.Entry{}, err
		}
		return gate.Enter(user, cluster)
	}
}

// whilePresent runs something as long as kcp is there, and anew when it comes back:
// what failed meanwhile would be tried again ever more rarely.
func whilePresent(ctx context.Context, pulse *kcp.Pulse, run func(context.Context)) {
	for {
		there, err := pulse.Await(ctx)
		if err != nil {
			return
		}
		running, stop := context.WithCancel(ctx)
		unbind := context.AfterFunc(there, stop)
		run(running)
		unbind()
		stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// latest is the time that the grace of a deletion begins by.
func latest(c clock.WithTicker) clock.PassiveClock {
	if k, ok := c.(*kcp.Clock); ok {
		return k.Latest()
	}
	return c
}
