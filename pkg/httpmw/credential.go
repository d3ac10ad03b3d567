package httpmw

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/auth"
)

// Credentials find the token with which the hub asks kcp as the caller of a request. kcp itself then
// asks whether the caller may: the hub adds none of its own rights.
type Credentials struct {
	// IDToken returns the ID token of a Session of the portal.
	IDToken func(ctx context.Context, session string) (string, error)
	// StaticToken returns the static token that a session of the portal began with. It is nil if no
	// session did.
	StaticToken func(credential string) (token string, ok bool)
}

// TokenOf returns the bearer token of a request or, for the portal's cookie, the ID token of its
// Session or the static token that it began with.
func (c Credentials) TokenOf(r *http.Request) (string, error) {
	caller := CallerOf(r)
	if !caller.ByCookie() {
		return caller.Bearer()
	}
	if c.StaticToken != nil && caller.Identity.Issuer == auth.StaticIssuer {
		if token, ok := c.StaticToken(caller.Identity.Credential); ok {
			return token, nil
		}
	}
	return c.IDToken(r.Context(), caller.Session)
}
