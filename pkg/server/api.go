package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// api creates the routes, and what ends the streams of people who lost a right.
func (a *assembly) api(serving context.Context) error {
	c, v := a.hub.config, a.views
	authenticators, err := a.authenticators()
	if err != nil {
		return err
	}
	metrics, err := httpmw.NewMetrics(a.hub.registry)
	if err != nil {
		return err
	}
	gate := tenancy.Gate{Tree: c.Tree, Cluster: v.Cluster, Index: v.Index, Org: v.Org, Workspace: v.Workspace, Sudo: v.Sudo, Roles: v.Roles, User: v.ByName}
	bots := a.botGate()
	a.auditor = httpmw.NewAuditor(a.hub.audit.Write, c.Clock)
	enter := entering(a.available, a.reachable, entrance(gate, bots))
	forward, err := a.proxy(serving, enter)
	if err != nil {
		return err
	}
	a.revocation, err = revocation.New(revocation.Config{
		Views: v, Enter: enter, Subscribers: []revocation.Subscriber{forward}, Clock: a.clock, Metrics: a.hub.registry,
		Kcp: revocation.Reviews{Clients: a.clients.FailFast(), User: v.ByName, Bot: v.BotOfAccount, ClusterRole: v.Listers().ClusterRoles.Get},
	})
	if err != nil {
		return err
	}
	a.available.OnUnavailable(a.revocation.RecheckAll)
	a.tenancyEndpoints.OnOutage(a.revocation.RecheckAll)
	a.accessEndpoints.OnOutage(a.revocation.RecheckAll)
	s := store.New(a.clients.FailFast().Fenced(a.disk.WriteRight), c.Tree, a.clusters.Users, a.clusters.Orgs)
	if a.sessions, err = a.newSessions(s); err != nil {
		return err
	}
	a.uses = httpmw.NewUses(a.sessions.Touch)
	limits := a.hub.limits
	people := httpmw.Authentication{
		Tokens: limits.Authenticator(authenticators, c.Limits.FailedAuthenticationsPerPeer, func(hash string) bool { return len(v.SessionsOfToken(hash)) > 0 }), People: v, Sessions: v,
		SignUp: limits.SignUps(a.auditor.SignUp(store.NewSignUp(s, v, a.reservedName), v, c.Registration), c.Limits.SignUpsPerPeer, c.Limits.SignUps),
		Admins: httpmw.Admins{Users: c.AdminUsers, Groups: c.AdminGroups}, SessionIdleTimeout: c.Sessions.IdleTimeout, Used: a.uses.Record, Clock: a.clock,
	}
	if tokens := a.hub.tokens; tokens != nil {
		people.Known = tokens.Has
	}
	// Requests to a workspace have no cookie and sign nobody up.
	proxied := people
	if people.Cookies, err = a.cookies(); err != nil {
		return err
	}
	proxied.SignUp = nil
	authenticate, authenticateProxied, err := a.withBots(bots, httpmw.Authenticate(people), httpmw.Authenticate(proxied))
	if err != nil {
		return err
	}
	tokens, err := a.botTokens(s)
	if err != nil {
		return err
	}
	callers, err := a.callers()
	if err != nil {
		return err
	}
	pages, err := a.portal()
	if err != nil {
		return err
	}
	counted, err := a.measure()
	if err != nil {
		return err
	}
	observe := httpmw.Observe(log.From(serving), metrics, c.TrustedProxies)
	a.app = routes{
		observe:      func(next http.Handler) http.Handler { return observe(a.auditor.Refusals(next)) },
		present:      httpmw.RequireAvailable(a.available.Wait),
		authenticate: authenticate, authenticateProxied: authenticateProxied,
		room:    httpmw.RefuseWrites(a.disk.Err),
		forward: forward, login: a.login(people, authenticators, counted.login).Mount, portal: pages, botTokens: counted.bots,
		reachable: func(org string) error { return a.reachable(org) },
		config:    c, limits: limits, clock: a.clock, views: v, store: s, sessions: a.sessions, writeEnds: a.sessions.WriteEnds, enter: entrance(gate, bots),
		rights: a.rights, followed: settled(a.rights.Followed, a.revocation.Recheck),
		recheck: a.revocation.Recheck, tokens: tokens, bindings: callers.bindings, rolesFollowed: workspace.NewRolesFollowed(v),
		audit: a.auditor.Audit, readAudit: a.hub.audit.Read, ca: a.hub.certificate.CA, globalCluster: a.clusters.Providers,
	}.router()
	return nil
}

// entering is the gate of the proxy. It is also evaluated for open streams, which end when kcp is
// unavailable, or a shard that the Workspace or its Organization lies on.
func entering(there transport.Healths, reachable func(org string, clusters ...string) error, enter func(caller, cluster string) (tenancy.Entry, error)) func(user, cluster string) (tenancy.Entry, error) {
	return func(user, cluster string) (tenancy.Entry, error) {
		if err := there.Err(); err != nil {
			return tenancy.Entry{}, err
		}
		entry, err := enter(user, cluster)
		if err == nil {
			err = reachable(entry.Workspace.OrgUUID, entry.Workspace.ClusterID)
		}
		return entry, err
	}
}

// reachable is nil while the shards of an Organization and of other logical clusters answer.
func (a *assembly) reachable(org string, clusters ...string) error {
	if o, ok := a.views.Org(org); ok {
		clusters = append(clusters, o.ClusterID)
	}
	return cmp.Or(a.tenancyEndpoints.Err(clusters...), a.accessEndpoints.Err(clusters...))
}

// proxy returns the proxy to kcp. The controllers that run on every replica learn of the writes
// of tenants from it.
func (a *assembly) proxy(serving context.Context, enter func(user, cluster string) (tenancy.Entry, error)) (*proxy.Proxy, error) {
	config, limits := a.admin, a.hub.config.Limits
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("kcp's URL: %w", err)
	}
	connections, err := newUpstream(config)
	if err != nil {
		return nil, err
	}
	a.upstream = transport.NewConnections(connections)
	return proxy.New(proxy.Config{
		Upstream: upstream, Transport: a.clients.Health().Bind(a.upstream), Enter: enter,
		Caller: func(r *http.Request) proxy.Caller { return httpmw.CallerOf(r) },
		Token:  httpmw.BearerToken,
		Intend: httpmw.IntendProxied,
		Wrote: func(e tenancy.Entry, w tenancy.ObjectWrite) {
			a.definitions.Wrote(e, w)
			a.repairs.Wrote(e, w)
		},
		Streams:  proxy.StreamLimits{All: limits.MaxStreams, PerPerson: limits.MaxStreamsPerPerson, Refused: a.hub.limits.Refused},
		Draining: serving, Metrics: a.hub.registry,
	})
}

// settled returns followed, with a recheck of the person's streams before it holds. A
// handler that asks it may see a change of the views before Revocation is told, and its
// answer must not be faster than the cut.
func settled(followed func(org, workspace, user string) bool, recheck func(user string)) func(org, workspace, user string) bool {
	return func(org, workspace, user string) bool {
		if !followed(org, workspace, user) {
			return false
		}
		recheck(user)
		return true
	}
}
