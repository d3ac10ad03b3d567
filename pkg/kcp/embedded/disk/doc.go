// Package disk measures a file system and allocates blocks of a file. It imports nothing of kcp, so
// that packages that do not link kcp can use it.
package disk
