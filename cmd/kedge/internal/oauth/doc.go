// Package oauth is the OAuth client of kedge: the authorization code flow with PKCE and
// a loopback redirect (RFC 8252, 7636), the device flow (RFC 8628), refresh and revocation
// (RFC 6749, 7009). The endpoints come from the hub's metadata (RFC 8414), which must name the
// hub itself as issuer, so that no secret goes to another server.
package oauth
