package contract

import (
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/config"
)

func TestDocument_isValidWithItsExamples(t *testing.T) {
	t.Parallel()
	raw, err := yaml.YAMLToJSONStrict([]byte(config.OpenAPI))
	require.NoError(t, err)
	document, err := openapi3.NewLoader().LoadFromData(raw)
	require.NoError(t, err)
	require.True(t, document.IsOpenAPI31OrLater())
	require.NoError(t, document.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableMultiError()))
}

// visit calls f for every object of the document with its JSON pointer.
func visit(node any, pointer string, f func(pointer string, in map[string]any)) {
	switch in := node.(type) {
	case map[string]any:
		f(pointer, in)
		for name, child := range in {
			visit(child, pointer+"/"+escape(name), f)
		}
	case []any:
		for i, child := range in {
			visit(child, pointer+"/"+strconv.Itoa(i), f)
		}
	}
}

// The examples are valid where objects are closed, too.
func TestExamples_haveDocumentedFieldsOnly(t *testing.T) {
	t.Parallel()
	c, err := Load()
	require.NoError(t, err)
	bodies, components := 0, 0
	visit(c.document, "", func(pointer string, in map[string]any) {
		if example, ok := in["example"]; ok && in["schema"] != nil {
			bodies++
			require.NoError(t, c.valid(pointer+"/schema", example), pointer)
		}
		if examples, ok := in["examples"].([]any); ok && strings.HasPrefix(pointer, "/components/schemas/") {
			for _, example := range examples {
				components++
				require.NoError(t, c.valid(pointer, example), pointer)
			}
		}
	})
	require.Greater(t, bodies, 30)
	require.Greater(t, components, 15)
}

func TestDocument_usesAllItsComponents(t *testing.T) {
	t.Parallel()
	c, err := Load()
	require.NoError(t, err)
	used := map[string]bool{}
	visit(c.document, "", func(pointer string, in map[string]any) {
		ref, ok := in["$ref"].(string)
		if !ok {
			return
		}
		target, _ := c.at(pointer)
		require.NotNil(t, target, "%s refers to nothing: %s", pointer, ref)
		used[ref] = true
	})
	components, _ := c.document["components"].(map[string]any)
	for kind, all := range components {
		if kind == "securitySchemes" {
			continue
		}
		for name := range all.(map[string]any) {
			require.True(t, used["#/components/"+kind+"/"+name], "%s %s is not used", kind, name)
		}
	}
}

func TestDocument_describesWhatItHas(t *testing.T) {
	t.Parallel()
	require.NotRegexp(t, `\b[OP]-\d`, config.OpenAPI)
	c, err := Load()
	require.NoError(t, err)
	tags, ids := map[any]bool{}, map[any]bool{}
	for _, tag := range c.document["tags"].([]any) {
		tags[tag.(map[string]any)["name"]] = true
	}
	for _, o := range c.Operations() {
		operation, _ := c.at(pointerTo(o))
		require.NotEmpty(t, operation["summary"], o)
		require.Regexp(t, `^[a-z][A-Za-z]+$`, operation["operationId"], o)
		require.False(t, ids[operation["operationId"]], "%v has the operationId of another", o)
		ids[operation["operationId"]] = true
		require.Len(t, operation["tags"], 1, o)
		require.True(t, tags[operation["tags"].([]any)[0]], "%v has an unknown tag", o)
		for _, in := range strings.Split(path(o.Pattern), "/") {
			if name, ok := strings.CutPrefix(in, "{"); ok {
				require.Contains(t, c.parameterNames(o), strings.TrimSuffix(name, "}"), o)
			}
		}
	}
	for _, kind := range []string{"responses", "requestBodies", "headers", "schemas"} {
		all, _ := c.at("/components/" + kind)
		for name, component := range all {
			require.NotEmpty(t, component.(map[string]any)["description"], "%s %s", kind, name)
		}
	}
}

// parameterNames are the names of the parameters of an operation that are in its path.
func (c *Contract) parameterNames(o Operation) []string {
	var names []string
	for _, at := range c.parametersOf(pointerTo(o)) {
		if p, _ := c.at(at); p["in"] == "path" {
			names = append(names, p["name"].(string))
		}
	}
	return names
}
