// Package connect finds the kcp that the hub uses: it starts an embedded kcp, or reads the
// kubeconfig of an external one, and returns the client configuration of kcp's admin. It does
// not import the server side of kcp: the caller passes the constructor of the embedded kcp.
package connect
