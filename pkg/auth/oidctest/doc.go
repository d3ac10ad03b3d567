// Package oidctest is an OpenID Connect provider for tests. It serves discovery, keys, the
// authorization endpoint (which logs a chosen person in without asking) and the token endpoint,
// with PKCE. Its refresh tokens are those of Dex: one per person and client, which every use
// replaces; a new login replaces it too, and a replaced one is answered with invalid_request.
package oidctest
