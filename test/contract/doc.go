// Package contract compares the answers of the hub with its OpenAPI document,
// config/openapi/openapi.yaml. Requests and answers are validated against the schemas of the
// document, and fields of Go types are compared with them. Schemas are those of JSON Schema
// 2020-12, as OpenAPI 3.1 has them, and every object is closed: a field that is not in the
// document is an error.
//
// Handlers are checked in their unit tests, by test/doubles/apitest, and the hub in
// integration and e2e tests, by test/framework.
package contract
