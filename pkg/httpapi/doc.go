// Package httpapi connects handlers to net/http. Handlers return errors; Handle converts them
// to metav1.Status answers. Read decodes and validates request bodies, Write encodes answers,
// and one table maps the codes of package errs to HTTP statuses. Behind Parameters.Declare, Handle
// refuses query parameters that a route does not have: a filter that is not one would show all, and
// a dry run that is misspelt would change something.
//
// The ETag of an answer is the resource version in kcp of the one object that the answer is
// about. If-Match is therefore part of the write and exact across replicas. A change of the
// object's status by a controller changes the ETag too.
package httpapi
