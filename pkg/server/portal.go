package server

import (
	"net"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/portal"
)

// portal returns what adds the routes of the pages, or nil without --portal.
func (a *assembly) portal() (func(chi.Router), error) {
	if !a.hub.config.Portal {
		return nil, nil
	}
	h, err := portal.New()
	if err != nil {
		return nil, err
	}
	return h.Mount, nil
}

// portalTokens reports whether people sign in to the portal with static tokens. They do for
// development only: on a hub that other machines cannot reach.
func (c Config) portalTokens() bool {
	listen, _, err := net.SplitHostPort(c.ListenAddress)
	external, bad := url.Parse(c.ExternalURL)
	return c.Portal && c.TokenFile != "" && err == nil && bad == nil && loopback(listen) && loopback(external.Hostname())
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
