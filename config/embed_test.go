package config_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
)

// People read the descriptions with kubectl explain and do not have the list of rules.
func TestSchemas_citeNoRulesByNumber(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(config.Schemas, "schemas/apiresourceschema-*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := config.Schemas.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `\b[OP]-\d`, string(raw), file)
	}
}

func TestSchemas_describeEveryField(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(config.Schemas, "schemas/apiresourceschema-*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := config.Schemas.ReadFile(file)
		require.NoError(t, err)
		var schema struct {
			Spec struct {
				Versions []struct{ Schema property }
			}
		}
		require.NoError(t, yaml.Unmarshal(raw, &schema), file)
		require.NotEmpty(t, schema.Spec.Versions, file)
		for _, version := range schema.Spec.Versions {
			version.Schema.described(t, file)
		}
	}
}

// property is a JSON schema, as far as the test reads it.
type property struct {
	Description string
	Properties  map[string]property
	Items       *property
}

func (p property) described(t *testing.T, at string) {
	t.Helper()
	for name, child := range p.Properties {
		if name != "metadata" {
			require.NotEmpty(t, strings.TrimSpace(child.Description), "%s.%s has no description", at, name)
		}
		child.described(t, at+"."+name)
	}
	if p.Items != nil {
		p.Items.described(t, at+"[]")
	}
}
