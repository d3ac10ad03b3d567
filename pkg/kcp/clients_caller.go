package kcp

import "k8s.io/client-go/rest"

// WithToken returns the same clients with a bearer token. It is for clients that Anonymous
// returned, which have no other credential: kcp then sees the owner of the token and nobody
// else. The connections are shared, so it is cheap enough for one request. No error and no
// metric has the token.
func (c *Clients) WithToken(token string) *Clients {
	options := c.options
	options.Config = rest.CopyConfig(c.options.Config)
	options.Config.BearerToken = token
	return c.must(options)
}
