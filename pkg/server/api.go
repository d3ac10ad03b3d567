package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/api/invitations"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/portal"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// api creates the routes, and what ends the streams of people who lost a right.
func (a *assembly) api(serving context.Context) error {
	c, v := a.hub.config, a.views
	if err := a.loadCostCenters(); err != nil {
		return err
	}
	authenticators, err := a.authenticators()
	if err != nil {
		return err
	}
	metrics, err := httpmw.NewMetrics(a.hub.registry)
	if err != nil {
		return err
	}
	observe := httpmw.Observe(log.From(serving), metrics, c.TrustedProxies)
	traced := httpmw.Trace(a.hub.tracer)
	gates := v.Gates(c.Tree, c.CI.Issuers)
	a.auditor = httpmw.NewAuditor(a.hub.audit.Write, c.Clock, a.hub.storage.Admit, a.place, a.hub.budget)
	enter := gates.While(a.available.Err, v.Reachable)
	forward, err := a.proxy(serving, enter)
	if err != nil {
		return err
	}
	reviews := revocation.Reviews{Clients: a.clients.FailFast(), User: v.ByName, Bot: v.BotOfAccount, ClusterRole: v.ClusterRoles.Get}
	a.revocation, err = revocation.New(revocation.Config{
		Views: v, Enter: enter, Streams: forward, Clock: a.clock, Metrics: a.hub.registry,
		Kcp: reviews,
	})
	if err != nil {
		return err
	}
	a.available.OnUnavailable(a.revocation.RecheckAll)
	v.OnOutage(a.revocation.RecheckAll)
	s := store.New(a.writers(), c.Tree, a.clusters.Users, a.clusters.Orgs)
	spares := store.NewSpares(s, v.SparesIn, a.spareHash, a.clock.Now)
	hear, err := a.hear(s)
	if err != nil {
		return err
	}
	if a.sessions, err = a.newSessions(s, hear); err != nil {
		return err
	}
	a.uses = httpmw.NewUses(a.sessions.Touch)
	limits := a.hub.limits
	invited := &invitations.Service{Invitations: v, Places: v, KCP: s, Now: transport.Current(a.clock).Now, Await: v.Await}
	people := a.people(authenticators, hear)
	people.SignUp = a.auditor.SignUp(store.NewSignUp(s, v, a.reservedName, personalSpares(c, spares)), v, c.Registration,
		limits.SignUps(c.Limits.SignUpsPerPeer, c.Limits.SignUps), invited.Vouch)
	a.tokenUses = bots.NewUses(a.sparing(s), c.Clock)
	if people.Bots, err = a.bots(gates.Bots); err != nil {
		return err
	}
	// Requests to a workspace have no cookie and sign nobody up, and bots may make all of them.
	proxied, robots := people, *people.Bots
	proxied.SignUp, robots.May = nil, httpmw.BotMay
	people.Bots = &robots
	if people.Cookies, err = a.cookies(); err != nil {
		return err
	}
	anonymous, err := a.clients.FailFast().Anonymous()
	if err != nil {
		return err
	}
	counted, err := a.measure()
	if err != nil {
		return err
	}
	botTokens := store.NewBotTokens(s, anonymous, a.accounts.Audiences)
	exchange := a.exchange(s, botTokens, counted.bots)
	a.forgetSubjectTokens = s.ForgetSubjectTokens
	r := routes{
		chain: chain{
			observe:      func(next http.Handler) http.Handler { return observe(traced(a.auditor.Refusals(next))) },
			present:      httpmw.RequireAvailable(a.available.Wait),
			audit:        a.auditor.Audit,
			authenticate: httpmw.Authenticate(people), authenticateProxied: httpmw.Authenticate(proxied),
			recognize: httpmw.Recognize(people),
			room:      httpmw.RefuseWrites(func() error { return a.hub.storage.Admit(storage.Ending) }),
		},
		config: c, parameters: a.parameters, limits: limits, clock: a.clock,
		views: v, store: s, spares: spares, clusters: a.clusters, gates: gates,
		sessions: a.sessions, login: a.login(people, authenticators, counted.login, exchange), forward: forward, streams: forward,
		rights: a.rights, rolesFollowed: workspace.NewRolesFollowed(v), revocation: a.revocation, reviews: reviews,
		botTokens: botTokens, countedBots: counted.bots,
		stored:      a.stored,
		storedInOrg: a.storedInOrg,
		invitations: invited, invitationCookies: a.invitationCookies(), countedInvitations: counted.invitations, countedRequests: counted.requests,
		certificate: a.hub.certificate, costCenters: &a.costCenters,
	}
	if r.as, err = a.callers(); err != nil {
		return err
	}
	if a.hub.records != nil {
		reader := records.NewReader(a.hub.records, a.hub.shipper)
		r.records, r.usage, r.access = reader, reader, reader
	}
	if c.Portal {
		if r.portal, err = portal.New(a.portal()); err != nil {
			return err
		}
	}
	a.app = r.router()
	return nil
}

// portal returns what is served beside the pages. People need the CA where no computer knows it: it is the
// hub's own, or a private one.
func (a *assembly) portal() portal.Options {
	o := portal.Options{DownloadsDir: a.hub.config.DownloadsDir, ExternalURL: a.hub.config.ExternalURL, Version: version.String()}
	if !a.hub.certificate.VerifiedBy(nil, time.Now()) {
		o.CA = a.hub.certificate.CA
	}
	return o
}

// writers returns the clients of requests that write: the store refuses what it has no room for.
func (a *assembly) writers() *kcp.Clients {
	return a.clients.FailFast().Admitted(a.hub.storage.AdmitCreation).Fenced(a.hub.storage.WriteRight)
}

// personalSpares returns the spares that sign-up takes.
func personalSpares(c Config, spares *store.Spares) store.SpareStore {
	if !c.PersonalOrgs {
		return nil
	}
	return spares
}

// callers returns a func that makes the clients that act in kcp as the caller of a request.
func (a *assembly) callers() (func(*http.Request) (store.Bindings, error), error) {
	anonymous, err := a.writers().Anonymous()
	credentials := httpmw.Credentials{IDToken: a.sessions.IDToken}
	if a.static != nil {
		credentials.StaticToken = a.static.TokenOfSession
	}
	return func(r *http.Request) (store.Bindings, error) {
		token, err := credentials.TokenOf(r)
		return store.NewBindings(anonymous.WithToken(token)), err
	}, err
}

// payer is the maker of an Organization.
func (a *assembly) payer(org string) string {
	if o, ok := a.views.Org(org); ok && o.Organization != nil {
		return o.Maker()
	}
	return org
}

// proxy returns the proxy to kcp. The controllers that run on every replica learn of the writes
// of tenants from it.
func (a *assembly) proxy(serving context.Context, enter func(user, cluster string) (tenancy.Entry, error)) (*proxy.Proxy, error) {
	config, limits := a.admin, a.hub.config.Limits
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("kcp's URL: %w", err)
	}
	upstreamTLS, err := connect.UpstreamTLS(config)
	if err != nil {
		return nil, err
	}
	a.upstream = transport.NewConnections(proxy.NewTransport(upstreamTLS, config.Proxy, a.clients.Health().Hear))
	return proxy.New(proxy.Config{
		Payer: a.payer, Guards: a.clusters.WorkspacePolicy.Guards,
		Upstream: upstream, Transport: a.hub.tracer.Proxied(a.clients.Health().Bind(a.upstream)), Enter: enter,
		Caller: func(r *http.Request) proxy.Caller { return httpmw.CallerOf(r) },
		Token:  func(r *http.Request) (string, error) { return httpmw.CallerOf(r).Bearer() },
		Intend: httpmw.IntendProxied, Storage: a.hub.storage, Stores: httpmw.MayWrite, Grow: a.grow,
		Wrote: func(e tenancy.Entry, w tenancy.ObjectWrite) {
			a.definitions.Wrote(e, w)
		},
		Made:    httpmw.Made,
		Streams: proxy.StreamLimits{All: limits.MaxStreams, PerPerson: limits.MaxStreamsPerPerson, Refused: a.hub.limits.Refused},
		Load: proxy.LoadLimits{
			All: limits.MaxRequestsInFlight, Requests: limits.MaxRequestsInFlightPerWorkspace, Bytes: limits.BytesInFlight(),
			Parallel: limits.LargeLists(a.hub.config.Embedded), Turns: limits.Turns(a.hub.config.Embedded),
			Stored: a.storedIn, Larger: a.largerIn, Served: a.servedIn, Refused: a.hub.limits.Refused,
		},
		Usage: a.hub.usage, Draining: serving, Metrics: a.hub.registry,
	})
}
