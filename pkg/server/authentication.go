package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// authenticators creates the authenticators of people: static tokens and ID tokens, compared with
// what kcp derives from them.
func (a *assembly) authenticators() (auth.Authenticator, error) {
	c := a.hub.config
	var people auth.Union
	if tokens := a.hub.tokens; tokens != nil {
		if err := tokens.Reserve(a.names...); err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		people = append(people, tokens)
		if c.PortalTokens() {
			a.static = tokens
		}
	}
	if c.Issuer != nil {
		config := *c.Issuer
		config.ReservedUsernames, config.Clock, config.Metrics = a.names, c.Clock, a.hub.registry
		var err error
		if a.oidc, err = auth.NewOIDC(config); err != nil {
			return nil, fmt.Errorf("--oidc-issuer-url: %w", err)
		}
		a.hub.checks.AddDetail("oidc", a.oidc.Err)
		people = append(people, a.oidc)
	}
	if len(c.CI.Issuers) > 0 {
		var err error
		a.jobs, err = auth.NewWorkloads(auth.WorkloadsConfig{Issuers: c.CI.Issuers, CA: c.CI.Certificates, Clock: c.Clock, Metrics: a.hub.registry})
		if err != nil {
			return nil, fmt.Errorf("--ci-issuer: %w", err)
		}
		a.hub.checks.AddDetail("ci", a.jobs.Err)
	}
	anonymous, err := a.clients.FailFast().Anonymous()
	if err != nil {
		return nil, err
	}
	compared := auth.NewComparison(people, func(ctx context.Context, token string) (string, []string, error) {
		return anonymous.UserOf(ctx, kcp.RootCluster, token)
	}, func(id *auth.Identity) bool { return a.hub.tokens != nil && a.hub.tokens.Has(id) }, c.Clock)
	a.hub.checks.AddDetail("usernames", compared.Err)
	return compared, nil
}

// reservedName reports whether a User of an issuer must not have a name: one of the hub or of kcp's
// admins, or one that --admin-user or --auditor-user gives to a static user.
func (a *assembly) reservedName(issuer, name string) bool {
	c := a.hub.config
	return auth.NameOfKCP(name) || slices.Contains(a.names, name) ||
		issuer != auth.StaticIssuer && (slices.Contains(c.AdminUsers, name) || slices.Contains(c.AuditorUsers, name))
}

// people returns the authentication of people by tokens. It signs nobody up, and knows neither cookies nor bots.
func (a *assembly) people(tokens auth.Authenticator, heard hear) httpmw.Authentication {
	c, v := a.hub.config, a.views
	handedOut := func(token string) bool { return len(v.SessionsOfToken(auth.JWTCredential(token))) > 0 }
	people := httpmw.Authentication{
		Tokens: a.hub.limits.Authenticator(tokens, c.Limits.FailedAuthenticationsPerPeer, handedOut),
		People: v, Sessions: v, Hear: heard,
		Admins:             httpmw.Admins{Users: c.AdminUsers, Groups: c.AdminGroups},
		Auditors:           httpmw.Admins{Users: c.AuditorUsers, Groups: c.AuditorGroups},
		SessionIdleTimeout: c.Sessions.IdleTimeout, Used: a.uses.Record, Clock: transport.Current(a.clock),
	}
	if known := a.hub.tokens; known != nil {
		people.Known = known.Has
	}
	return people
}

// bots returns the authentication of bots, who may make every request.
func (a *assembly) bots(gate tenancy.BotGate) (*httpmw.BotAuthentication, error) {
	c := a.hub.config
	tokens, err := auth.NewServiceAccounts(auth.ServiceAccountsConfig{
		Issuer: a.accounts.Issuer, Keys: a.accountKeys, Audience: tenancy.BotAudience,
		Clock: transport.Current(a.clock), KeyClock: c.Clock, Metrics: a.hub.registry,
	})
	if err != nil {
		return nil, err
	}
	now := transport.Current(a.clock)
	// A forged token passes only with the UIDs of a ServiceAccount and of a Secret that a Bot lists, which are
	// random. The tokens and the admins of its Workspace tell them, to people who can make requests anyway.
	listed := func(token string) bool {
		account, ok := tokens.Claimed(token)
		if !ok {
			return false
		}
		_, _, err := gate.Check(httpmw.BotTokenOf(account), now.Now())
		return err == nil
	}
	return &httpmw.BotAuthentication{
		Names: tokens.Names, Tokens: a.hub.limits.Authenticator(tokens, c.Limits.FailedAuthenticationsPerPeer, listed),
		Check: gate.Check, Await: a.views.AwaitBot, Used: a.tokenUses.Record, Clock: now,
	}, nil
}

// accountKeys gets the keys of the tokens of ServiceAccounts of all shards that have Workspaces.
func (a *assembly) accountKeys(ctx context.Context) ([]byte, error) {
	return a.accounts.Keys(ctx, a.views.Access.Clusters()...)
}

// sessionKeys returns the keys of --session-key-file, or those in the root workspace.
func (a *assembly) sessionKeys(starting context.Context) (*session.Keyring, error) {
	keys := a.hub.config.SessionKeys
	if keys == nil {
		stored, err := bootstrap.SessionKeys(starting, a.clients, a.clusters.Root, rand.Reader)
		if err != nil {
			return nil, err
		}
		if keys, err = session.ParseKeys(stored); err != nil {
			return nil, fmt.Errorf("the Secret %s in the root workspace: %w", bootstrap.SessionKeysName, err)
		}
	}
	return session.NewKeyring(keys, rand.Reader)
}

// hear takes note of the groups of a person.
type hear = func(context.Context, *v1alpha1.User, *auth.Identity) error

// hear returns what takes note of the groups of people.
func (a *assembly) hear(s *store.Store) (hear, error) {
	groups, err := store.NewGroups(store.GroupsConfig{
		Store: s, People: a.views, Room: a.hub.storage.AdmitCreation, Now: transport.Current(a.clock).Now,
		MaxAge: a.hub.config.GroupMaxAge, Metrics: a.hub.registry,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, u *v1alpha1.User, id *auth.Identity) error {
		if !id.GroupsKnown {
			return nil
		}
		return groups.Hear(ctx, u, tenancy.HeardGroups{Groups: id.Groups, IssuedAt: id.IssuedAt})
	}, nil
}

// newSessions returns the service of sessions.
func (a *assembly) newSessions(s *store.Store, heard hear) (*session.Service, error) {
	o := a.hub.config.Sessions
	c := session.Config{
		Keys: a.keyring, Sessions: s, Grants: s, Devices: sparingDevices{s, a.hub.storage.AdmitCreation}, Users: s,
		Cached: a.views.Session, Heard: heard, Room: a.hub.storage.AdmitCreation,
		IdleTimeout: o.IdleTimeout, MaxAge: o.MaxAge, Clock: transport.Current(a.clock), Random: rand.Reader, Metrics: a.hub.registry,
	}
	if a.oidc != nil {
		c.Provider = a.oidc
	}
	return session.New(c)
}

// cookies returns what makes the portal's cookie a credential.
func (a *assembly) cookies() (*httpmw.Cookies, error) {
	c := &httpmw.Cookies{Open: a.keyring.PortalSession, CrossOrigin: http.NewCrossOriginProtection(), Await: a.views.Await}
	if a.static != nil {
		c.Static = a.static.OfSession
	}
	// A proxy in front of the hub may change the Host header.
	external, err := url.Parse(a.hub.config.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("--external-url: %w", err)
	}
	return c, c.CrossOrigin.AddTrustedOrigin(external.Scheme + "://" + external.Host)
}

// invitationCookies keep an Invitation in a browser during a login.
func (a *assembly) invitationCookies() httpmw.InvitationCookies {
	return httpmw.InvitationCookies{Keys: a.keyring, Clock: transport.Current(a.clock)}
}

// login returns the handler of /auth. tokens authenticates ID tokens as for every other request.
func (a *assembly) login(people httpmw.Authentication, tokens auth.Authenticator, counted *login.Metrics, exchange *bots.Exchange) *login.Handler {
	c := a.hub.config
	h := &login.Handler{
		Sessions: a.sessions, Devices: a.sessions, KeepGrant: a.sessions.KeepGrant, Keyring: a.keyring,
		SignUp: people.UserOf, SessionOf: a.keyring.Session(a.views.Session), Audit: a.auditor.Record, Metrics: counted,
		Available: a.available.Wait, Limits: a.hub.limits.Logins(c.Limits.LoginRates()),
		NewSecret: func() string { return rand.Text() + rand.Text() },
		Clock:     transport.Current(a.clock), ExternalURL: c.ExternalURL, Invitations: a.invitationCookies(),
	}
	if a.oidc != nil {
		h.Provider = auth.Login{OIDC: a.oidc, Tokens: tokens}
	}
	if a.jobs != nil {
		h.Jobs, h.IssueJobToken = a.jobs, exchange.Issue
	}
	if a.static != nil {
		h.StaticTokens = func(ctx context.Context, token string) (*auth.Identity, bool, error) {
			id, ok, err := people.Tokens.Authenticate(ctx, token)
			return id, ok && id.Issuer == auth.StaticIssuer, err
		}
	}
	return h
}
