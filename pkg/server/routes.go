package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	accessapi "github.com/faroshq/kedge-hub/pkg/api/access"
	"github.com/faroshq/kedge-hub/pkg/api/admin"
	auditapi "github.com/faroshq/kedge-hub/pkg/api/audit"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/api/catalog"
	"github.com/faroshq/kedge-hub/pkg/api/credentials"
	"github.com/faroshq/kedge-hub/pkg/api/groups"
	"github.com/faroshq/kedge-hub/pkg/api/invitations"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/api/members"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	"github.com/faroshq/kedge-hub/pkg/api/providers"
	requestsapi "github.com/faroshq/kedge-hub/pkg/api/requests"
	"github.com/faroshq/kedge-hub/pkg/api/sessions"
	usageapi "github.com/faroshq/kedge-hub/pkg/api/usage"
	"github.com/faroshq/kedge-hub/pkg/api/users"
	"github.com/faroshq/kedge-hub/pkg/api/why"
	"github.com/faroshq/kedge-hub/pkg/api/workspaces"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/portal"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/template"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// chain is the middleware of the routes, in the order in which a request passes it.
// authenticateProxied takes the place of authenticate for requests to the proxy, and recognize for those
// that need no login.
type chain struct {
	observe, present, audit, authenticate, authenticateProxied, recognize, room func(http.Handler) http.Handler
}

// routes are the dependencies of all routes.
type routes struct {
	chain
	config Config
	// parameters are the query parameters of each operation under /api.
	parameters httpapi.Parameters
	limits     *httpmw.Limits
	// clock is that of the assembly.
	clock    clock.WithTicker
	views    *views.Views
	store    *store.Store
	spares   *store.Spares
	clusters bootstrap.Clusters
	gates    tenancy.Gates
	sessions *session.Service
	// login is nil in lists of the routes behind authentication; portal is nil without --portal.
	login   *login.Handler
	portal  *portal.Handler
	forward http.Handler
	streams api.Streams

	rights access.Readiness
	// stored adds to the view of a Workspace what it stores.
	stored func(tenancy.Workspace, *rest.Workspace)
	// storedInOrg returns what an Organization stores, if that is known.
	storedInOrg func(o tenancy.Org) (rest.Amount, bool)
	// rolesFollowed reports whether the roles of a Workspace cover all that is bound there.
	rolesFollowed func(org, workspace string) bool
	revocation    *revocation.Revocation
	// reviews asks kcp what it allows a caller.
	reviews revocation.Reviews
	// as writes APIBindings with the credential of the caller of a request.
	as          func(*http.Request) (store.Bindings, error)
	botTokens   store.BotTokens
	countedBots *bots.Metrics
	// invitations decides about Invitations.
	invitations        *invitations.Service
	invitationCookies  httpmw.InvitationCookies
	countedInvitations func(event string)
	countedRequests    func(event string)
	// records, usage and access are nil without a database.
	records     auditapi.Records
	usage       usageapi.Records
	access      accessapi.Records
	certificate *certs.Serving
	// costCenters are those that may be written.
	costCenters *api.CostCenters
}

// Route is a method and a pattern of the router.
type Route struct{ Method, Pattern string }

// Routes returns every route that a hub serves behind authentication, ordered by
// pattern and method. Tests hold their lists to it. HEAD is a route wherever GET is.
func Routes() []Route {
	var all []Route
	_ = chi.Walk(unguarded().router(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
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

// unguarded returns routes of a hub with the default options, without any middleware, for lists of them.
func unguarded() routes {
	config, err := NewOptions().Complete()
	if err != nil {
		panic("server: the defaults are not valid: " + err.Error())
	}
	limits, err := httpmw.NewLimits(config.Clock, prometheus.NewRegistry())
	if err != nil {
		panic("server: the metric of limits is not valid: " + err.Error())
	}
	through := func(next http.Handler) http.Handler { return next }
	return routes{
		views: &views.Views{}, chain: chain{through, through, through, through, through, through, through},
		config: config, limits: limits, clock: config.Clock, forward: http.NotFoundHandler(),
	}
}

// deps are what the handlers have in common. Their clock is that by which rights, sessions and tokens begin and end.
func (p routes) deps() api.Deps {
	c, v, s, now := p.config, p.views, p.store, transport.Current(p.clock)
	creator := tenancy.Creator{Org: v.Org, Workspace: v.Workspace, Membership: v.Membership, MembershipsAt: v.MembershipsAt}
	return api.Deps{
		Views: v, Store: s, Rights: httpmw.Rights{Membership: v.Membership, Store: s, Clock: now},
		Scopes: httpmw.Scopes{Tenants: v, Creator: creator, Reachable: v.Reachable},
		Tree:   c.Tree, NewUUID: uuid.NewString, Spares: p.spares, Clock: now, Streams: p.streams,
		ExternalURL: c.ExternalURL, CA: p.certificate.CA,
		Billing:         billingRules(c, p.costCenters),
		DefaultOrgQuota: c.DefaultOrgQuota, DefaultWorkspaceQuota: c.DefaultWorkspaceQuota,
		Graces: graces(c), CreateTimeout: c.CreateTimeout, FollowTimeout: c.FollowTimeout,
	}
}

func (p routes) router() chi.Router {
	c, v, s, d := p.config, p.views, p.store, p.deps()
	// Requests of deletion and of creation are at kcp's time.
	deletions := d
	deletions.Clock = transport.Latest(p.clock)
	requests := p.limits.PerPerson("requests_per_person", c.Limits.RequestsPerPerson)
	writes := p.limits.WritesPerPerson("writes_per_person", c.Limits.WritesPerPerson)
	// Watches, followed logs and upgraded connections have limits of their own.
	served := p.limits.InFlight("requests_in_flight_per_person", c.Limits.MaxRequestsInFlightPerPerson, func(r *http.Request) bool { return !proxy.Streaming(r) })
	written := p.limits.WritesInFlight("writes_in_flight_per_person", c.Limits.MaxWritesInFlightPerPerson)
	r := chi.NewRouter()
	r.Use(p.observe, middleware.GetHead)
	r.NotFound(p.present(http.HandlerFunc(httpapi.NotFound)).ServeHTTP)
	r.MethodNotAllowed(p.present(http.HandlerFunc(httpapi.MethodNotAllowed)).ServeHTTP)
	// These pages report in their own form that kcp is unavailable, or do not depend on it.
	if p.login != nil {
		p.login.Mount(r)
	}
	if p.portal != nil {
		p.portal.Mount(r)
	}
	invited := &invitations.Handler{
		Deps: d, Service: p.invitations, Cookies: p.invitationCookies, Count: p.countedInvitations, NewID: newInvitationID, NewSecret: newInvitationSecret,
		Followed:   p.revocation.AfterRecheck(p.rights.Followed),
		LimitLooks: p.limits.PerPeer("invitations_per_peer", c.Limits.InvitationsPerPeer),
	}
	invited.MountOpen(r.With(p.present, p.recognize, p.parameters.Declare))
	for _, path := range []string{"/api", "/apis", "/apis/*", "/services", "/services/*", "/api/v1", "/api/v1/*"} {
		r.With(p.present).HandleFunc(path, proxy.NotHere)
	}
	r.With(p.present, proxy.Shape(c.Tree), p.audit, p.authenticateProxied, requests, writes, served, httpmw.Limited, httpmw.AdmitBody, p.room).Handle("/clusters/*", p.forward)
	r.Route("/api/", func(r chi.Router) {
		r.Use(p.present, p.audit, p.authenticate, requests, writes, written, served, httpmw.Limited,
			httpmw.BufferBody(p.authenticate), p.room, p.parameters.Declare)
		(&users.Handler{
			Deps: deletions, Search: v.SearchPeople, Bound: p.rights.FollowedEverywhere, WriteEnds: p.sessions.WriteEnds,
			LimitSearch: p.limits.PerPerson("searches_per_person", c.Limits.SearchesPerPerson),
		}).Mount(r)
		(&admin.Handler{
			Deps: deletions, People: v.People, Orgs: v.Orgs, Memberships: s, Storage: c.StorageLimits(),
			Bound: p.rights.FollowedEverywhere, WriteEnds: p.sessions.WriteEnds,
		}).Mount(r)
		(&members.Handler{
			Deps: d, Memberships: s, Followed: p.revocation.AfterRecheck(p.rights.Followed),
			LimitAdditions: p.limits.Additions("additions_per_person", c.Limits.AdditionsPerPerson),
		}).Mount(r)
		invited.Mount(r)
		(&groups.Handler{Deps: d, Groups: v, KCP: s, MaxAge: c.GroupMaxAge, Known: c.KnowsGroups()}).Mount(r)
		(&requestsapi.Handler{Deps: d, Requests: v, KCP: s, Count: p.countedRequests, Followed: p.revocation.AfterRecheck(p.rights.Followed)}).Mount(r)
		(&orgs.Handler{Deps: deletions, BoundForAll: p.rights.FollowedByAll, Stored: p.storedInOrg}).Mount(r)
		(&workspaces.Handler{Deps: deletions, Stored: p.stored}).Mount(r)
		(&bots.Handler{
			Deps: d, Bots: v, KCP: s, Tokens: p.botTokens, Metrics: p.countedBots, MaxTokenTTL: c.Bots.TokenMaxTTL, Issuers: c.CI.Issuers,
			Recheck: func(b *v1alpha1.Bot) { p.revocation.Recheck(tenancy.BotKey(b.Status.ServiceAccountUID)) },
		}).Mount(r)
		enabling := &providers.Handler{
			Deps: d, Catalog: v, KCP: s, Followed: p.rolesFollowed, Kept: template.Keeps(c.Template),
			As: func(r *http.Request) (providers.Bindings, error) { return p.as(r) },
		}
		enabling.Mount(r)
		(&why.Handler{
			Deps: d, Enter: p.gates.Enter, Allows: p.reviews.Allows, Caches: v, Entries: enabling.Visible, Policy: p.clusters.WorkspacePolicy,
		}).Mount(r)
		(&catalog.Handler{
			Deps: d, Catalog: v, Orgs: v, Entries: s, GlobalCluster: p.clusters.Providers, MayBind: p.mayBind, PrivateBackends: c.Catalog.AllowPrivateBackends,
		}).Mount(r)
		reads := auditReads(p.limits, c.Limits.AuditReadsPerPerson)
		(&auditapi.Handler{Deps: d, Records: p.records, LimitReads: reads}).Mount(r)
		(&usageapi.Handler{Deps: d, Records: p.usage, LimitReads: reads}).Mount(r)
		(&accessapi.Handler{Deps: d, Records: p.access, LimitReads: reads}).Mount(r)
		(&sessions.Handler{Deps: d, Sessions: v, Service: p.sessions, Recheck: p.revocation.Recheck, IdleTimeout: c.Sessions.IdleTimeout}).Mount(r)
		(&credentials.Handler{Deps: d, Enter: p.gates.Enter}).Mount(r)
	})
	return r
}

// mayBind asks kcp whether the caller of a request may bind an export.
func (p routes) mayBind(ctx context.Context, r *http.Request, cluster string, ref v1alpha1.APIExportRef) error {
	as, err := p.as(r)
	if err != nil {
		return err
	}
	return as.MayBind(ctx, cluster, ref)
}

// newInvitationID returns a version 7 UUID.
func newInvitationID() string { return uuid.Must(uuid.NewV7()).String() }

// newInvitationSecret returns 256 random bits in base64url.
func newInvitationSecret() string {
	secret := make([]byte, 32)
	// It never fails.
	_, _ = rand.Read(secret)
	return base64.RawURLEncoding.EncodeToString(secret)
}
