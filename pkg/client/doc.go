// Package client is a typed client of the hub's REST API. It imports the types of the API, in
// apis/rest/v1, and no other package of the hub, so that integrators can use these two alone. kedge,
// the command line, is built on it.
//
// A Client sends requests with the token that Config.Token returns, to one hub. The methods of
// Client concern the caller; Client.Org, Org.Workspace and Client.Admin return clients of a smaller
// scope, which set the path and the tenancy headers. Objects has the requests that all kinds of
// objects have alike: list, get, create, update and delete.
//
//   - Errors of the hub are *Error. It has a metav1.Status and the request id, and the predicates
//     of k8s.io/apimachinery/pkg/api/errors work on it. *UnreachableError and *CertificateError
//     mean that there was no answer.
//   - Lists are iterators that read one page after another.
//   - An object that was read has an ETag, and its JSON as the hub sent it. IfMatch makes a write depend on it. IdempotencyKey makes
//     a creation repeatable; a creation without one gets a random key. Reads, and writes that are
//     safe to repeat, are retried while the hub answers that it is unavailable.
//   - A creation returns when the object is ready, or the context ends. With NoWait it returns
//     at once, with the object in its phase.
//
// Do sends any request, for routes that have no method here.
package client
