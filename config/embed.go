package config

import "embed"

// Schemas holds the APIResourceSchemas of the tenancy model, one YAML file each.
//
//go:embed schemas/*.yaml
var Schemas embed.FS

// KCP holds templates of the tree's objects, filled in by pkg/kcp/bootstrap.
//
//go:embed kcp/*.yaml
var KCP embed.FS

// OpenAPI is the OpenAPI 3.1 document of the hub, as YAML.
//
//go:embed openapi/openapi.yaml
var OpenAPI string
