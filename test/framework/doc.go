// Package framework starts the servers under test: a real kcp in a process of its own,
// and hubs in front of it, each with a root workspace of its own.
package framework
