// Package disk measures the free space of a file system, allocates blocks of a file, and
// monitors whether the disk of the embedded kcp is full. It imports nothing of kcp, so that
// packages that do not link kcp can use it.
package disk
