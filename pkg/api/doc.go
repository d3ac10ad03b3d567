// Package api has what the handlers of the REST API share: their dependencies, and the shape of a
// write. Each resource is a package below this one.
//
// A Change is a write: its intent goes into the audit log, it is one compare-and-swap in kcp with the
// precondition of the request, and it is answered when the caches of this replica show it, so that the
// caller's next request finds it. The write does not end with its request.
package api
