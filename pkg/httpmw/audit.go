package httpmw

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"k8s.io/apiserver/pkg/endpoints/request"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// auditRetryAfter is the Retry-After of a change that is refused because the audit log cannot be
// written.
const auditRetryAfter = 10 * time.Second

// Intent is a change that is about to be written.
type Intent struct {
	// Reduces is true for a change that takes rights away and gives none. It is carried out even
	// if the audit log cannot be written.
	Reduces bool
	// SameSize is true for a POST that makes no object. Every other one that does not reduce rights
	// grows the store.
	SameSize bool
	// Cluster is the logical cluster of a proxied request.
	Cluster string
	// Org, Workspace and Object are what the change affects, where the path does not name it.
	Org, Workspace, Object string
	// Claims is true for a request that creates Org. Nobody has that UUID before, and another person may get it if the
	// request is refused: until Claimed, its caller is an outsider there.
	Claims bool
	Facts  audit.Facts
}

// change is what the audit log is told of a request. Only the goroutine of the request uses it, where mu does not guard it.
type change struct {
	log   func(audit.Event) error
	admit func(storage.Write) error
	// mu guards intended and late: an intent that is late is written by the goroutine that sends the first write.
	mu       sync.Mutex
	intended bool
	late     func()
	// budget decides at the first event of the request whether it has any; left is true if not. A change of the API
	// always has.
	budget        *audit.Budget
	decided, left bool
	// limited is true for a request within the limits of its caller.
	limited bool
	// belongs is true if the caller has a role in the Organization of the request.
	belongs bool
	intent  Intent
	// made is the name of what a proxied create made.
	made string
	// receipt is that of the end of a right, and nil before it is recorded.
	receipt *rest.Receipt
	// place finds where a proxied request goes.
	place func() Place
}

type changeKey struct{}

// Audit writes the outcome of every request that may change something, and gives Intend the log.
// Refusals of requests that Limited has not seen are sampled: nothing else limits their number.
// It runs after Observe and, for clusters, after proxy.Shape, but before Authenticate: a refused
// request has an outcome, too.
func (a *Auditor) Audit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !MayChange(r) {
			next.ServeHTTP(w, r)
			return
		}
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		c := &change{log: a.log, admit: a.admit, budget: a.budget}
		if o, ok := r.Context().Value(originKey{}).(*origin); ok {
			c.place = func() Place { return a.place(r, o.caller) }
			if _, proxied := request.RequestInfoFrom(r.Context()); proxied {
				o.place = c.place
			}
		}
		r = r.WithContext(context.WithValue(r.Context(), changeKey{}, c))
		returned := false
		defer func() {
			code := wrapped.Status()
			switch {
			case code != 0:
			case !returned:
				code = http.StatusInternalServerError
			case r.Header.Get("Upgrade") != "":
				// An upgraded connection has no status here.
				code = http.StatusSwitchingProtocols
			default:
				code = http.StatusOK
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			// A write behind the answer has an intent only, like that of a hub that was killed.
			e := c.event(r)
			e.Stage, e.Code = audit.StageOutcome, code
			e.Unchanged = !c.intended && e.Resource == nil
			if made := w.Header().Get("Location"); made != "" && e.Object == "" && r.Method == http.MethodPost {
				e.Object = path.Base(made)
			}
			switch {
			case c.intended:
				_ = c.write(e)
			case code == http.StatusUnauthorized, code == http.StatusTooManyRequests:
				// Refusals reports it.
			case !c.limited:
				a.sampled(r.Context(), e)
			default:
				_ = c.write(e)
			}
		}()
		next.ServeHTTP(wrapped, r)
		returned = true
	})
}

// write writes an event of the request, unless the budget leaves the request out.
func (c *change) write(e audit.Event) error {
	if !c.decided {
		c.decided, c.left = true, !c.budget.Take(e)
	}
	if c.left {
		return nil
	}
	return c.log(e)
}

// Limited marks a request for Audit as one within the limits of its caller. It runs after the limits
// per person.
func Limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(changeKey{}).(*change); ok {
			c.limited = true
		}
		next.ServeHTTP(w, r)
	})
}

// write is what a change of the API does to the store.
func (i Intent) write(method string) storage.Write {
	switch {
	case i.Reduces:
		return storage.Ending
	case method == http.MethodPost && !i.SameSize:
		return storage.Growth
	}
	return storage.Change
}

// Intend writes the intent of a request before the change is written. The error refuses the
// request: the audit log cannot be written or takes no more of its caller, or the store has no room for a change of
// the API. The proxy judges the size of its requests itself. It panics if Audit did not run: a route without it must not write.
func Intend(r *http.Request, i Intent) error {
	c, ok := r.Context().Value(changeKey{}).(*change)
	if !ok {
		panic("httpmw: route without Audit")
	}
	if _, proxied := request.RequestInfoFrom(r.Context()); !proxied {
		if err := c.admit(i.write(r.Method)); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intent, c.intended = i, true
	c.belongs = c.belongs || i.Org != "" && !i.Claims
	e := c.event(r)
	e.Stage = audit.StageIntent
	if wait, ok := c.share(r, e); !ok {
		c.intended = false
		if !i.Reduces {
			return errFull(wait)
		}
		c.late = func() {
			c.intended = true
			_ = c.write(e)
		}
		return nil
	}
	if err := c.write(e); err != nil && !i.Reduces {
		return NotAudited(err)
	}
	return nil
}

// share takes the events of a change of the API from the shares of its caller and its Organization. Proxied writes have a
// budget, and platform admins are no tenants.
func (c *change) share(r *http.Request, e audit.Event) (wait time.Duration, ok bool) {
	o, found := r.Context().Value(originKey{}).(*origin)
	if e.Resource != nil || found && o.caller != nil && o.caller.PlatformAdmin {
		return 0, true
	}
	return c.budget.Share(e)
}

// BeforeWrite is called before each write to kcp with its context. Of a request that ends a right and has used up its share
// of the audit log, the intent is written then: so what ends something has its events, and one can repeat the same end as
// often as one likes without an event of rights.
func BeforeWrite(ctx context.Context) {
	c, ok := ctx.Value(changeKey{}).(*change)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if late := c.late; late != nil {
		c.late = nil
		late()
	}
}

// errFull is the error for a change for which the share of its caller or its Organization has no room.
func errFull(wait time.Duration) error {
	refused := errs.New(errs.TooManyRequests,
		"you or your organization have made so many changes that the audit log, which keeps those of everybody, "+
			"takes no more of them at the moment; what takes rights away is still carried out")
	return refused.After(wait.Truncate(time.Second) + time.Second)
}

// IntendProxied writes the intent of a proxied request that may change anything, or that uses sudo.
// Without sudo, a delete passes also if the audit log cannot be written.
func IntendProxied(r *http.Request, e tenancy.Entry, sudo bool) error {
	if !MayChange(r) {
		return nil
	}
	info, ok := request.RequestInfoFrom(r.Context())
	deletes := ok && (info.Verb == "delete" || info.Verb == "deletecollection")
	facts := audit.Facts{Elevated: sudo}
	if sudo {
		facts.Request = e.SudoRequest
	}
	return Intend(r, Intent{
		Reduces: deletes && !sudo, Org: e.Workspace.OrgUUID, Workspace: e.Workspace.UUID, Cluster: e.Workspace.ClusterID,
		Facts: facts,
	})
}

// Made records the name of what a proxied request created, for its outcome.
func Made(r *http.Request, name string) {
	if c, ok := r.Context().Value(changeKey{}).(*change); ok {
		c.made = name
	}
}

// Claimed records what a request has claimed, for its outcome: an Organization, which is its caller's from then on, or a
// Workspace. It need not be what the intent names: a request with the same key may have claimed another one before.
func Claimed(r *http.Request, org, workspace string) {
	if c, ok := r.Context().Value(changeKey{}).(*change); ok {
		c.intent.Org, c.intent.Workspace, c.belongs = org, workspace, true
	}
}

// Record records the receipt of the end of a right, for the outcome of the request.
func Record(r *http.Request, receipt rest.Receipt) {
	if c, ok := r.Context().Value(changeKey{}).(*change); ok {
		c.receipt = &receipt
	}
}

// NotAudited is the error for a change that is refused because the audit log cannot be written, or takes no more of its
// caller.
func NotAudited(err error) error {
	if errs.Is(err, errs.TooManyRequests) {
		return err
	}
	return errs.Wrap(errs.Unavailable, err,
		"the audit log of the hub cannot be written at the moment, so only what takes rights away is carried out; "+
			"try again later, and tell the operator if it lasts").After(auditRetryAfter)
}

// belongs records that the caller of a request has a role in its Organization.
func belongs(r *http.Request) {
	if c, ok := r.Context().Value(changeKey{}).(*change); ok {
		c.belongs = true
	}
}

// event returns the event of a request without its stage.
func (c *change) event(r *http.Request) audit.Event {
	e := BaseEvent(r.Context())
	e.Org, e.Workspace, e.Cluster, e.Object = c.intent.Org, c.intent.Workspace, c.intent.Cluster, c.intent.Object
	if info, ok := request.RequestInfoFrom(r.Context()); ok {
		e.Action = "kubernetes " + info.Verb
		e.Resource = &audit.Resource{Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: cmp.Or(info.Name, c.made)}
		if !c.intended && c.place != nil {
			at := c.place()
			e.Org, e.Workspace, e.Cluster, c.belongs = at.Org, at.Workspace, at.Cluster, at.Belongs
		}
	} else if route := routeOf(r); route != nil {
		e.Action = methodOf(r) + " " + route.RoutePattern()
		e.Org, e.Workspace = cmp.Or(e.Org, route.URLParam("org")), cmp.Or(e.Workspace, route.URLParam("ws"))
		for _, param := range []string{"user", "sa", "name", "session", "entry", "invitation", "request"} {
			e.Object = cmp.Or(e.Object, route.URLParam(param))
		}
	}
	e.Outsider = e.Org != "" && !c.belongs
	facts := c.intent.Facts
	facts.Receipt = c.receipt
	if c.intended && facts.Given() {
		e.Facts = &facts
	}
	return e
}

// routeOf returns the route of a request, also if the request was refused before it was routed. It
// returns nil outside a router.
func routeOf(r *http.Request) *chi.Context {
	route := chi.RouteContext(r.Context())
	if route == nil || !strings.HasSuffix(route.RoutePattern(), "*") {
		return route
	}
	found := chi.NewRouteContext()
	if route.Routes != nil && route.Routes.Match(found, r.Method, cmp.Or(r.URL.RawPath, r.URL.Path)) {
		return found
	}
	return route
}

// BaseEvent returns an event with the actor, the peer and the ids of the request that a context
// belongs to.
func BaseEvent(ctx context.Context) audit.Event {
	e := audit.Event{Actor: audit.Actor{Kind: audit.ActorAnonymous}}
	o, ok := ctx.Value(originKey{}).(*origin)
	if !ok {
		return e
	}
	e.ID, e.ClientRequest = o.id, o.clientID
	if o.peer.IsValid() {
		e.Peer = o.peer.String()
	}
	if o.caller != nil {
		e.Actor = o.caller.actor()
	}
	return e
}

// actor is the caller in the audit log.
func (c *Caller) actor() audit.Actor {
	if c.Bot == nil {
		return audit.Actor{Kind: audit.ActorPerson, User: c.User.Name, Issuer: c.Identity.Issuer, Session: c.Session, Cookie: c.cookie}
	}
	bot := audit.Actor{Kind: audit.ActorBot, Bot: c.Bot.Bot.Name}
	if account := c.Identity.Account; account != nil {
		i := slices.IndexFunc(c.Bot.Bot.Spec.Tokens, func(t v1alpha1.BotToken) bool { return t.SecretUID == account.SecretUID })
		if i >= 0 {
			bot.Token = c.Bot.Bot.Spec.Tokens[i].ID
		}
	}
	return bot
}

// MayChange reports whether a request has events in the audit log: it may change anything in kcp or
// in what runs there, or it uses sudo. Reviews of access and identity in kcp change nothing.
func MayChange(r *http.Request) bool {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	if len(r.Header["Impersonate-User"]) > 0 {
		return true
	}
	switch info.Subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	return MayWrite(r)
}
