// Package errs defines Error, the error type of all failures that a client is told
// about. An Error has a Code, a message and causes for the client, and a wrapped error for
// the log. Codes are independent of HTTP: package httpapi maps them to statuses in one
// table.
//
// The package imports the standard library only, so that every package can use it.
package errs
