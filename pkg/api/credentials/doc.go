// Package credentials hands out what kubectl needs to work in a Workspace: a
// kubeconfig without a token, and the token when kubectl asks for it. Both pass
// the gate that the proxy passes, so no credential is ever issued for what could
// not be reached with it (O-10).
package credentials
