// Package apitest is what the tests of pkg/api have in common: a small world in
// memory in place of the views, and a router with the real middlewares in front
// of what is tested. Only tests import it.
package apitest
