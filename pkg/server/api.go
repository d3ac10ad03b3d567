package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// api puts everything together that answers requests. followed tells whether a
// person's rights in kcp are as their Memberships say.
func (h *hub) api(serving context.Context, clients *kcp.Clients, clusters bootstrap.Clusters, v *views.Views, config *rest.Config, followed func(org, workspace, user string) bool) (http.Handler, error) {
	c := h.config
	var authenticators auth.Union
	if c.TokenFile != "" {
		tokens, err := auth.LoadStaticTokens(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		authenticators = append(authenticators, tokens)
	}
	metrics, err := httpmw.NewMetrics(h.registry)
	if err != nil {
		return nil, err
	}
	gate := tenancy.Gate{Tree: c.Tree, Cluster: v.Cluster, Index: v.Index, Org: v.Org, Workspace: v.Workspace, Sudo: v.Sudo}
	forward, err := h.proxy(serving, config, gate)
	if err != nil {
		return nil, err
	}
	s := store.New(clients, c.Tree, clusters.Users, clusters.Orgs)
	return routes{
		observe:      httpmw.Observe(log.From(serving), metrics),
		authenticate: httpmw.Authenticate(authenticators, v, signUp(store.NewSignUp(s, v)), httpmw.Admins{Users: c.AdminUsers, Groups: c.AdminGroups}),
		forward:      forward,
		config:       c, views: v, store: s, enter: gate.Enter, followed: followed, ca: h.bundle.CAPEM,
	}.router(), nil
}

func (h *hub) proxy(serving context.Context, config *rest.Config, gate tenancy.Gate) (http.Handler, error) {
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("kcp's URL: %w", err)
	}
	// Of the admin's configuration the CA goes in, and nothing that authenticates.
	tlsConfig, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: config.CAData, CAFile: config.CAFile, ServerName: config.ServerName,
	}})
	if err != nil {
		return nil, fmt.Errorf("kcp's CA: %w", err)
	}
	return proxy.New(proxy.Config{
		Upstream: upstream, Transport: proxyTransport(tlsConfig), Enter: gate.Enter,
		User:     func(r *http.Request) string { return httpmw.CallerOf(r).User.Name },
		Token:    httpmw.BearerToken,
		Draining: serving, Metrics: h.registry,
	})
}

// signUp makes a User out of an identity.
func signUp(s *store.SignUp) httpmw.SignUp {
	return func(ctx context.Context, id *auth.Identity) (*v1alpha1.User, error) {
		return s.Ensure(ctx, tenancy.NewUserSpec(id.Issuer, id.Subject, id.Username, id.DisplayName, id.Email), id.PreferredUsername)
	}
}
