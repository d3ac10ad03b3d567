// Package oidctest is an OpenID Connect provider for tests. It serves discovery, keys, the
// authorization endpoint (which logs a chosen person in without asking) and the token endpoint,
// with PKCE. Its refresh tokens behave like those of Dex: there is one per person and client, and
// each use and each login replaces it. A replaced token is answered with invalid_request.
package oidctest
