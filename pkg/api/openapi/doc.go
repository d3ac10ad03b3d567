// Package openapi serves the OpenAPI document of the hub as JSON. It requires no credential,
// because the document contains nothing that is not public in the source.
package openapi
