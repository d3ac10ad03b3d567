package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/store"
)

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

// newSessions returns the service of sessions.
func (a *assembly) newSessions(s *store.Store) (*session.Service, error) {
	o := a.hub.config.Sessions
	c := session.Config{
		Keys: a.keyring, Sessions: s, Grants: s, Devices: s, Users: s,
		IdleTimeout: o.IdleTimeout, MaxAge: o.MaxAge, Clock: a.clock, Random: rand.Reader, Metrics: a.hub.registry,
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
