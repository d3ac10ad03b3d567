// Package log creates the zap logger of the process, carries it in contexts, and routes the
// logs of klog and logr, which kcp and client-go use, to it.
package log
