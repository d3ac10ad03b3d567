package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/kcp"
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
	anonymous, err := a.clients.FailFast().Anonymous()
	if err != nil {
		return nil, err
	}
	compared := auth.NewComparison(people, func(ctx context.Context, token string) (string, error) {
		return anonymous.UsernameOf(ctx, kcp.RootCluster, token)
	}, c.Clock)
	a.hub.checks.AddDetail("usernames", compared.Err)
	return compared, nil
}

// reservedName reports whether a User of an issuer must not have a name: one of the hub or of kcp's
// admins, or one that --admin-user gives to a static user.
func (a *assembly) reservedName(issuer, name string) bool {
	return auth.NameOfKCP(name) || slices.Contains(a.names, name) || issuer != auth.StaticIssuer && slices.Contains(a.hub.config.AdminUsers, name)
}
