//go:build tools

// Package dex pins the version of Dex, the identity provider that the tests log in to. It is
// a module of its own, so that the dependencies of Dex are not those of the product.
package dex

import _ "github.com/dexidp/dex/cmd/dex"
