// Package errs holds the one error type of the hub. Whatever goes wrong on the
// way of a request is an *Error with a Code, and httpapi alone knows which HTTP
// status a Code is. It imports the standard library only.
package errs
