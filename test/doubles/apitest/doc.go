// Package apitest holds what the tests of pkg/api share: an in-memory replacement of the
// caches, and a router with the real middleware. Only tests import it.
package apitest
