package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// api builds the routes. wrote is called for each write of a tenant through the proxy.
func (h *hub) api(serving context.Context, clients *kcp.Clients, there transport.Healths, clusters bootstrap.Clusters, v *views.Views, config *rest.Config, changes *audit.Log, rights access.Readiness, wrote func(tenancy.Entry, tenancy.ObjectWrite)) (http.Handler, *revocation.Revocation, error) {
	c := h.config
	var authenticators auth.Union
	if c.TokenFile != "" {
		tokens, err := auth.LoadStaticTokens(c.TokenFile, h.names...)
		if err != nil {
			return nil, nil, fmt.Errorf("--token-file: %w", err)
		}
		authenticators = append(authenticators, tokens)
	}
	metrics, err := httpmw.NewMetrics(h.registry)
	if err != nil {
		return nil, nil, err
	}
	gate := tenancy.Gate{Tree: c.Tree, Cluster: v.Cluster, Index: v.Index, Org: v.Org, Workspace: v.Workspace, Sudo: v.Sudo, Roles: v.Roles, User: v.ByName}
	enter := entering(there, gate)
	forward, err := h.proxy(serving, config, clients.Health(), enter, changes, wrote)
	if err != nil {
		return nil, nil, err
	}
	ended, err := revocation.New(revocation.Config{
		Views: v, Enter: enter, Subscribers: []revocation.Subscriber{forward}, Clock: c.Clock, Metrics: h.registry,
		Kcp: revocation.Reviews{Clients: clients.FailFast(), User: v.ByName, ClusterRole: v.Listers().ClusterRoles.Get},
	})
	if err != nil {
		return nil, nil, err
	}
	there.OnUnavailable(ended.RecheckAll)
	s := store.New(clients.FailFast().Fenced(h.disk.WriteRight), c.Tree, clusters.Users, clusters.Orgs)
	return routes{
		observe:      httpmw.Observe(log.From(serving), metrics),
		present:      httpmw.RequireAvailable(there.Wait),
		authenticate: httpmw.Authenticate(authenticators, v, signUp(store.NewSignUp(s, v), c.Registration, changes), httpmw.Admins{Users: c.AdminUsers, Groups: c.AdminGroups}),
		room:         httpmw.RefuseWrites(h.disk.Err),
		forward:      forward,
		config:       c, views: v, store: s, enter: gate.Enter, rights: rights, followed: settled(rights.Followed, ended.Recheck), audit: auditing(changes), ca: h.bundle.CAPEM,
	}.router(), ended, nil
}

// entering is the gate of the proxy. It is also evaluated for open streams, which end when kcp is
// unavailable.
func entering(there transport.Healths, gate tenancy.Gate) func(user, cluster string) (tenancy.Entry, error) {
	return func(user, cluster string) (tenancy.Entry, error) {
		if err := there.Err(); err != nil {
			return tenancy.Entry{}, err
		}
		return gate.Enter(user, cluster)
	}
}

func (h *hub) proxy(serving context.Context, config *rest.Config, health *transport.Health, enter func(user, cluster string) (tenancy.Entry, error), changes *audit.Log, wrote func(tenancy.Entry, tenancy.ObjectWrite)) (*proxy.Proxy, error) {
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("kcp's URL: %w", err)
	}
	// The proxy gets the CA of the admin's configuration, and no credential.
	tlsConfig, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: config.CAData, CAFile: config.CAFile, ServerName: config.ServerName,
	}})
	if err != nil {
		return nil, fmt.Errorf("kcp's CA: %w", err)
	}
	return proxy.New(proxy.Config{
		Upstream: upstream, Transport: health.Bind(proxy.NewTransport(tlsConfig, config.Proxy)), Enter: enter,
		User:     func(r *http.Request) string { return httpmw.CallerOf(r).User.Name },
		Token:    httpmw.BearerToken,
		Identity: func(r *http.Request) string { return httpmw.CallerOf(r).User.Spec.RBACIdentity },
		Elevated: func(r *http.Request, user string, e tenancy.Entry) {
			changes.Write(audit.Event{Actor: user, Action: "sudo " + r.Method, Org: e.Workspace.OrgUUID, Workspace: e.Workspace.UUID})
		},
		Wrote:    wrote,
		Draining: serving, Metrics: h.registry,
	})
}

// signUp creates the User of an identity. It approves a pending User whom the operator's flags name.
func signUp(s *store.SignUp, registration string, changes *audit.Log) httpmw.SignUp {
	return func(ctx context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error) {
		spec := tenancy.NewUserSpec(id.Issuer, id.Subject, id.Username, id.DisplayName, id.Email)
		switch {
		case vouched:
		case registration == registrationClosed:
			return nil, errs.New(errs.Forbidden, "this hub takes nobody new; ask a platform admin")
		case registration == registrationApproval:
			spec.Registration = v1alpha1.RegistrationPending
		}
		u, err := s.Ensure(ctx, spec, id.PreferredUsername)
		if err != nil || !vouched || u.Spec.Registration != v1alpha1.RegistrationPending {
			return u, err
		}
		if u, err = s.Approve(ctx, u); err == nil {
			changes.Write(audit.Event{Actor: "kedge-hub", Action: "approve", Object: u.Name})
		}
		return u, err
	}
}

// auditing writes changes to the audit log.
func auditing(to *audit.Log) func(httpmw.Change) {
	return func(c httpmw.Change) {
		to.Write(audit.Event{
			Actor: c.User, Action: c.Method + " " + c.Route, Org: c.Params["org"], Workspace: c.Params["ws"], Object: cmp.Or(c.Params["user"], c.Params["name"], c.Made),
			Code: c.Code, Request: c.Request,
		})
	}
}
