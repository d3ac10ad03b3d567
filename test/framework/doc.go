// Package framework starts what the tests run against: a real kcp in a process
// of its own, and hubs in front of it, each with a tree of its own.
package framework
