// Package bootstrap makes the hub's tree in a kcp: its workspaces, exports,
// types and bindings. It runs at every start and changes nothing that is already
// as it should be.
package bootstrap
