// Package auth turns a bearer token into an Identity. Nothing in it looks at a
// header that a client could fill in at will.
package auth
