// Package controller is the one loop that every reconciler runs on: a queue of
// cluster-aware keys, workers, retries with a back-off, ordered steps, one
// commit, the operation annotation and the common status.
package controller
