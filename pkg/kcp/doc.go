// Package kcp is how the hub talks to a kcp, embedded or not: typed clients for
// one logical cluster at a time, and informers over all of them through the
// virtual workspaces of the hub's exports, one watch per kind and endpoint.
package kcp
