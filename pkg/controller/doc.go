// Package controller is the one loop that every reconciler runs on: a queue of
// cluster-aware keys, workers, retries with a back-off, ordered steps, one
// commit, the operation annotation and the common status, and how what is deleted
// is held, counted and let go of.
//
// Objects that have a status of ours go through Reconcile, which turns a Kind and
// its steps into a Func. What is derived, and has no status, is a Func by itself.
// New gives either its queue.
package controller
