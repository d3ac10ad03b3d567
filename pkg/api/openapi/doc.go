// Package openapi serves the OpenAPI document of the hub as JSON, and reads from it which query
// parameters each operation has. The document requires no credential, because it contains nothing
// that is not public in the source.
package openapi
