// Package openapi serves the OpenAPI document of the hub as JSON, to callers without a
// credential too: it holds nothing but what is public in the source.
package openapi
