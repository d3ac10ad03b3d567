// Package log carries the logger through contexts and bridges the logs of the
// libraries, klog and logr among them, onto it.
package log
