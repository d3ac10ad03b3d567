// Package credentials serves the kubeconfig of a Workspace and POST /api/credentials, which
// the exec plugin of kubectl calls. A kubeconfig never contains a token.
//
// Both endpoints apply the same gate as the proxy (tenancy.Gate), so that no credential is
// issued for a logical cluster that its holder could not reach (O-10).
package credentials
