//go:build !linux

package main

// lowerPriority does nothing: the hub is deployed on Linux.
func lowerPriority() {}
