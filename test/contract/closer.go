package contract

import "strings"

// closer closes the schemas of a document: where a value is validated, an object has no field
// that its schema does not name. Components stay open themselves, because a schema can extend
// them with allOf.
type closer struct{ root map[string]any }

// schemas closes all schemas below a node that is not a schema.
func (c closer) schemas(node any) {
	switch in := node.(type) {
	case map[string]any:
		for name, child := range in {
			switch name {
			case "example", "examples", "default":
			case "schema":
				c.closeValue(child)
			case "schemas":
				components, _ := child.(map[string]any)
				for _, s := range components {
					c.inside(s)
				}
			default:
				c.schemas(child)
			}
		}
	case []any:
		for _, child := range in {
			c.schemas(child)
		}
	}
}

// closeValue closes the schema of a value.
func (c closer) closeValue(node any) {
	s, ok := node.(map[string]any)
	if !ok {
		return
	}
	c.inside(s)
	if c.closable(s) {
		s["unevaluatedProperties"] = false
	}
}

// inside closes the schemas of the fields and items of a value.
func (c closer) inside(node any) {
	s, _ := node.(map[string]any)
	fields, _ := s["properties"].(map[string]any)
	for _, field := range fields {
		c.closeValue(field)
	}
	c.closeValue(s["items"])
	c.closeValue(s["additionalProperties"])
	for _, of := range []string{"allOf", "oneOf", "anyOf"} {
		branches, _ := s[of].([]any)
		for _, branch := range branches {
			c.inside(branch)
		}
	}
}

// closable reports whether a schema names the fields of an object and says nothing about
// others.
func (c closer) closable(s map[string]any) bool {
	if ref, ok := s["$ref"].(string); ok {
		node := any(c.root)
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			in, _ := node.(map[string]any)
			node = in[step]
		}
		target, _ := node.(map[string]any)
		return c.closable(target)
	}
	if _, ok := s["additionalProperties"]; ok {
		return false
	}
	if _, ok := s["properties"]; ok {
		return true
	}
	for _, of := range []string{"allOf", "oneOf", "anyOf"} {
		branches, _ := s[of].([]any)
		for _, branch := range branches {
			if b, ok := branch.(map[string]any); ok && c.closable(b) {
				return true
			}
		}
	}
	return false
}
