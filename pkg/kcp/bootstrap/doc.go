// Package bootstrap creates the hub's tree in a kcp: its workspaces, APIResourceSchemas,
// APIExports, WorkspaceTypes and APIBindings, from the manifests in package config. It runs
// at every start and is idempotent: objects that are as desired are not written.
package bootstrap
