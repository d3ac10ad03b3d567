// Package why answers whether a person or a bot may do something in a Workspace, where their access comes
// from, and what is missing.
//
// It judges nothing itself. The gate of the proxy decides whether the caller gets into the Workspace, and
// kcp's authorizer, by a SubjectAccessReview, whether the action is allowed there. What explains the
// verdict comes from the caches, and from what the caller of the request can list.
package why
