// Package httpapi is how handlers speak HTTP: they return errors, Read takes a
// body in, Write sends a value, and one table says which status a failure is.
package httpapi
