// Package v1 has the bodies of requests and answers of /api and /auth as Go types. The types have the names
// and the fields of the schemas in config/openapi/openapi.yaml. The hub, its client and the command
// line use them; the package imports nothing else of the hub, so that integrators need it and
// pkg/client alone.
package v1
