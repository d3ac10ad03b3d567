package httpmw

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/recent"
	"github.com/faroshq/kedge-hub/pkg/storage"
)

const (
	// refusalWindow is the time in which equal refusals have one event.
	refusalWindow = time.Minute
	// maxRefusals is the number of refusals that are remembered, least recently seen first out.
	maxRefusals = 10_000
)

// Auditor writes the events of requests.
type Auditor struct {
	log   func(audit.Event) error
	admit func(storage.Write) error
	place func(*http.Request, *Caller) Place
	// budget is nil without a limit.
	budget *audit.Budget
	clock  clock.PassiveClock
	recent *recent.Cache[refusal, refused]
}

// Place is where a proxied request goes.
type Place struct {
	// Org and Workspace are UUIDs. They are empty if there is no such Workspace.
	Org, Workspace string
	// Cluster is an ID, or what the request names if there is no such Workspace.
	Cluster string
	// Belongs is true if the caller has a role in Org.
	Belongs bool
}

// NewAuditor returns an Auditor that writes with log. It asks admit whether the store has room for a
// change of the API; nil admits all. place finds where a proxied request goes; its caller is nil if nobody
// is authenticated. It may be nil where nothing is proxied. budget bounds the events of tenants; nil means no
// limit.
func NewAuditor(
	log func(audit.Event) error, c clock.PassiveClock, admit func(storage.Write) error, place func(*http.Request, *Caller) Place,
	budget *audit.Budget,
) *Auditor {
	if admit == nil {
		admit = func(storage.Write) error { return nil }
	}
	if place == nil {
		place = func(*http.Request, *Caller) Place { return Place{} }
	}
	return &Auditor{log: log, admit: admit, place: place, budget: budget, clock: c, recent: recent.New[refusal, refused](maxRefusals)}
}

// refusal is what equal refusals have in common. client is the key of a caller, or the network of a
// peer that is not authenticated.
type refusal struct {
	client, action string
	code           int
}

// refused counts equal refusals.
type refused struct {
	since      time.Time
	suppressed int
}

// Refusals writes an event for an answer with 401 or 429 if none was written for an equal one in
// the last minute. It runs right after Observe.
func (a *Auditor) Refusals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		wrapped, ok := w.(middleware.WrapResponseWriter)
		if !ok {
			panic("httpmw: Refusals without Observe")
		}
		code := wrapped.Status()
		if code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
			return
		}
		e := BaseEvent(r.Context())
		e.Stage, e.Code, e.Action = audit.StageOutcome, code, "refuse "+methodOf(r)
		if c := routeOf(r); c != nil && c.RoutePattern() != "" {
			e.Action += " " + c.RoutePattern()
		}
		if o, ok := r.Context().Value(originKey{}).(*origin); ok && o.place != nil {
			at := o.place()
			e.Org, e.Workspace, e.Cluster, e.Outsider = at.Org, at.Workspace, at.Cluster, at.Org != "" && !at.Belongs
		}
		a.sampled(r.Context(), e)
	})
}

// Record writes an event with the ids and the peer of the request that a context belongs to. A
// refusal of a client that nobody knows is sampled, and one without an intent is in the budget of its actor. The intent of
// a login takes from the share of its person, that of a token for a job from the share of the bot, and is refused if that is
// used up.
func (a *Auditor) Record(ctx context.Context, e audit.Event) error {
	of := BaseEvent(ctx)
	e.ID, e.ClientRequest, e.Peer = of.ID, of.ClientRequest, of.Peer
	if e.Code >= http.StatusBadRequest && e.Actor.Kind == audit.ActorAnonymous {
		a.sampled(ctx, e)
		return nil
	}
	if !a.budget.Take(e) {
		return nil
	}
	if e.Stage == audit.StageIntent && (audit.LogsIn(e.Action) || e.Actor.Bot != "") {
		if wait, ok := a.budget.Share(e); !ok {
			return errFull(wait)
		}
	}
	return a.log(e)
}

// sampled writes an event of a refusal if none was written for an equal one in the last minute.
func (a *Auditor) sampled(ctx context.Context, e audit.Event) {
	// No peer has the name of a User or a bot.
	key := refusal{client: e.Actor.User + e.Actor.Bot, action: e.Action, code: e.Code}
	if key.client == "" {
		key.client = network(peerFrom(ctx)).String()
	}
	if e.Suppressed = a.suppressed(key); e.Suppressed >= 0 {
		_ = a.log(e)
	}
}

// suppressed returns the number of refusals without an event since the last one, or -1 if this one
// is to have none either.
func (a *Auditor) suppressed(key refusal) (n int) {
	now := a.clock.Now()
	a.recent.Change(key, func(last refused) refused {
		if now.Sub(last.since) < refusalWindow {
			n = -1
			return refused{last.since, last.suppressed + 1}
		}
		n = last.suppressed
		return refused{since: now}
	})
	return n
}
