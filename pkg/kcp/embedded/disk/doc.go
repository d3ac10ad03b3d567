// Package disk asks the operating system about the disk that a kcp keeps its data
// on, and has blocks of it set aside. It imports nothing of kcp, so that others than
// embedded can ask, too.
package disk
