package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/api/admin"
	auditapi "github.com/faroshq/kedge-hub/pkg/api/audit"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/api/credentials"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/api/members"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/api/sessions"
	"github.com/faroshq/kedge-hub/pkg/api/users"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/portal"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// searchesPerSecond is the rate limit of the search for people, per person.
const searchesPerSecond = 2

// auditReadsPerSecond is the rate limit of reading the audit log, per person. A read looks at some
// MiB of the log.
const auditReadsPerSecond = 2

// routes are the dependencies of all routes.
type routes struct {
	observe, present, authenticate, room func(http.Handler) http.Handler
	// audit runs before authenticate.
	audit func(http.Handler) http.Handler
	// authenticateProxied is authenticate for requests to the proxy.
	authenticateProxied func(http.Handler) http.Handler
	forward             http.Handler
	// login adds the routes of /auth.
	login func(chi.Router)
	// portal adds the routes of the pages below /ui/. It is nil without --portal.
	portal func(chi.Router)

	config Config
	limits *httpmw.Limits
	// clock is the clock of deletions, at kcp's time.
	clock clock.WithTicker
	views *views.Views
	store *store.Store
	// sessions ends Sessions.
	sessions sessions.Service
	// writeEnds writes the ends of Sessions that ended by rule.
	writeEnds func(ctx context.Context, user string) error
	enter     func(user, cluster string) (tenancy.Entry, error)
	rights    access.Readiness
	// followed is rights.Followed after a recheck of the streams of the person.
	followed func(org, workspace, user string) bool
	// recheck ends the streams of a caller that has no right to them any more.
	recheck func(caller string)
	// tokens issues tokens of bots.
	tokens bots.Tokens
	// botTokens counts them.
	botTokens *bots.Metrics
	// bindings writes APIBindings with the credential of the caller of a request.
	bindings func(r *http.Request) (store.Bindings, error)
	// rolesFollowed reports whether the roles of a Workspace cover all that is bound there.
	rolesFollowed func(org, workspace string) bool
	ca            func() []byte
	// readAudit is the method of audit.Log.
	readAudit func(context.Context, audit.Query) ([]audit.Event, *audit.Position, error)
	// globalCluster is the logical cluster of the Global CatalogEntries.
	globalCluster string
}

// Route is a method and a pattern of the router.
type Route struct{ Method, Pattern string }

// Routes returns every route that a hub serves behind authentication, ordered by
// pattern and method. Tests hold their lists to it. HEAD is a route wherever GET is.
func Routes() []Route {
	through := func(next http.Handler) http.Handler { return next }
	config, err := NewOptions().Complete()
	if err != nil {
		panic("server: the defaults are not valid: " + err.Error())
	}
	limits, err := httpmw.NewLimits(config.Clock, prometheus.NewRegistry())
	if err != nil {
		panic("server: the metric of limits is not valid: " + err.Error())
	}
	var all []Route
	router := routes{observe: through, present: through, audit: through, authenticate: through, authenticateProxied: through, room: through, forward: http.NotFoundHandler(), login: func(chi.Router) {}, config: config, limits: limits, clock: config.Clock}.router()
	_ = chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		all = append(all, Route{method, pattern})
		if method == http.MethodGet {
			all = append(all, Route{http.MethodHead, pattern})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Method, b.Method))
	})
	return slices.Compact(all)
}

func (p routes) router() chi.Router {
	c, v, s, begins := p.config, p.views, p.store, transport.Latest(p.clock)
	creator := tenancy.Creator{Org: v.Org, Workspace: v.Workspace, Membership: v.Membership, MembershipsAt: v.MembershipsAt}
	scopes := httpmw.Scopes{Tenants: v, Creator: creator, Reachable: v.Reachable}
	requests := p.limits.PerPerson("requests_per_person", c.Limits.RequestsPerPerson)
	writes := p.limits.WritesPerPerson("writes_per_person", c.Limits.WritesPerPerson)
	r := chi.NewRouter()
	r.Use(p.observe, portal.Outside(login.Outside(p.present)), middleware.GetHead)
	r.NotFound(httpapi.NotFound)
	r.MethodNotAllowed(httpapi.MethodNotAllowed)
	p.login(r)
	if p.portal != nil {
		p.portal(r)
	}
	for _, path := range []string{"/api", "/apis", "/apis/*", "/services", "/services/*", "/api/v1", "/api/v1/*"} {
		r.HandleFunc(path, proxy.NotHere)
	}
	r.With(proxy.Shape(c.Tree), p.audit, p.authenticateProxied, requests, writes, httpmw.Limited, httpmw.ReleaseBody, p.room).Handle("/clusters/*", p.forward)
	r.Route("/api/", func(r chi.Router) {
		r.Use(p.audit, p.authenticate, requests, writes, httpmw.Limited, httpmw.WholeBody(p.authenticate), p.room)
		(&users.Handler{
			Views: v, Tenants: v, Store: s, DefaultOrgQuota: c.DefaultOrgQuota,
			DeletionGrace: c.DeletionGrace, Clock: begins, Followed: p.rights.FollowedEverywhere, WriteEnds: p.writeEnds,
			LimitSearch: p.limits.PerPerson("searches_per_person", searchesPerSecond), FollowTimeout: c.FollowTimeout,
		}).Mount(r)
		(&admin.Handler{
			Views: v, Await: v.Await, Followed: p.rights.FollowedEverywhere, Store: s, Index: v.Index, Orgs: v.Orgs, UsedWorkspaces: v.UsedWorkspaces, Clock: begins, DeletionGrace: c.DeletionGrace,
			DefaultOrgQuota: c.DefaultOrgQuota, DefaultWorkspaceQuota: c.DefaultWorkspaceQuota, FollowTimeout: c.FollowTimeout, WriteEnds: p.writeEnds,
		}).Mount(r)
		(&members.Handler{
			Views: v, Await: v.Await, Membership: v.Membership, Followed: p.followed, Store: s,
			OrgScope: scopes.Org, WorkspaceScope: scopes.Workspace, Clock: p.clock, FollowTimeout: c.FollowTimeout,
		}).Mount(r)
		(&orgs.Handler{
			Views: v, Await: v.Await, Followed: p.rights.FollowedByAll, Store: s, Tree: c.Tree, Scope: scopes.Org, CreatedScope: scopes.CreatedOrg, DeletedScope: scopes.DeletedOrg, Creator: creator, NewUUID: uuid.NewString, Clock: begins,
			DefaultOrgQuota: c.DefaultOrgQuota, DefaultWorkspaceQuota: c.DefaultWorkspaceQuota,
			DeletionGrace: c.DeletionGrace, CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
		}).Mount(r)
		(&workspaces.Handler{
			Views: v, Store: s, Tree: c.Tree,
			OrgScope: scopes.Org, VisitorScope: scopes.OrgVisitor, WorkspaceScope: scopes.Workspace, CreatedScope: scopes.CreatedWorkspace, Creator: creator,
			DeletedScope: scopes.DeletedWorkspace, NewUUID: uuid.NewString, Clock: begins, ExternalURL: c.ExternalURL,
			DefaultQuota: c.DefaultWorkspaceQuota, DeletionGrace: c.DeletionGrace, CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
		}).Mount(r)
		p.bots(scopes).Mount(r)
		p.providers(scopes).Mount(r)
		p.catalog(scopes).Mount(r)
		(&auditapi.Handler{
			Read: p.readAudit, Replica: c.Replica, OrgScope: scopes.Org,
			LimitReads: p.limits.PerPerson("audit_reads_per_person", auditReadsPerSecond),
		}).Mount(r)
		(&sessions.Handler{
			Views: v, Service: p.sessions, Recheck: p.recheck, IdleTimeout: c.Sessions.IdleTimeout, FollowTimeout: c.FollowTimeout, Clock: p.clock,
		}).Mount(r)
		(&credentials.Handler{
			WorkspaceScope: scopes.Workspace, Enter: p.enter, Tree: c.Tree,
			ExternalURL: c.ExternalURL, CA: p.ca, Clock: p.clock,
		}).Mount(r)
	})
	return r
}
