package contract

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequireFields requires that Go types have the JSON fields of schemas, by the name of the
// schema. A field of a response is required by its schema if its tag has no omitempty; fields of
// requests are compared by name and type only.
func RequireFields(t testing.TB, types map[string]any) {
	t.Helper()
	c, err := Load()
	require.NoError(t, err)
	for name, value := range types {
		schema, at := c.at("/components/schemas/" + name)
		require.NotNil(t, schema, "openapi.yaml has no schema %s", name)
		require.NoError(t, c.compare(at, reflect.TypeOf(value), strings.HasSuffix(name, "Request")), "the schema %s and %T differ", name, value)
	}
}

// compare compares a Go type with the schema at a pointer.
func (c *Contract) compare(pointer string, in reflect.Type, request bool) error {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	schema, at := c.at(pointer)
	for _, of := range []string{"oneOf", "anyOf"} {
		branches, _ := schema[of].([]any)
		for i := range branches {
			// The other branch is null.
			if branch, at := c.at(at + "/" + of + "/" + strconv.Itoa(i)); branch["type"] != "null" {
				return c.compare(at, in, request)
			}
		}
	}
	if member, ok := in.MethodByName("Value"); ok && in.Kind() == reflect.Slice {
		// A member of a merge patch: null takes it away.
		return c.compare(at, member.Type.Out(0), request)
	}
	switch {
	case in == reflect.TypeFor[json.RawMessage]():
		return nil
	case in.Implements(reflect.TypeFor[json.Marshaler]()), in.Implements(reflect.TypeFor[encoding.TextMarshaler]()),
		reflect.PointerTo(in).Implements(reflect.TypeFor[json.Marshaler]()):
		return is(schema, "string")
	}
	switch in.Kind() {
	case reflect.Struct:
		return c.compareFields(schema, at, in, request)
	case reflect.Slice:
		if in.Elem().Kind() == reflect.Uint8 {
			return is(schema, "string")
		}
		if err := is(schema, "array"); err != nil {
			return err
		}
		return c.compare(at+"/items", in.Elem(), request)
	case reflect.Map:
		return is(schema, "object")
	case reflect.String:
		return is(schema, "string")
	case reflect.Bool:
		return is(schema, "boolean")
	case reflect.Int, reflect.Int32, reflect.Int64:
		return is(schema, "integer")
	case reflect.Interface:
		return nil
	default:
		return fmt.Errorf("a field has the type %s", in)
	}
}

func (c *Contract) compareFields(schema map[string]any, at string, in reflect.Type, request bool) error {
	if err := is(schema, "object"); err != nil {
		return err
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	fields := fieldsOf(in)
	for name := range properties {
		if _, ok := fields[name]; !ok {
			return fmt.Errorf("the type has no field %s", name)
		}
	}
	for name, field := range fields {
		if properties[name] == nil {
			return fmt.Errorf("the schema has no property %s", name)
		}
		if !request && slices.Contains(required, any(name)) == field.optional {
			return fmt.Errorf("%s is required on one side only", name)
		}
		if err := c.compare(at+"/properties/"+name, field.in, request); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

type field struct {
	in       reflect.Type
	optional bool
}

// fieldsOf returns the JSON fields of a struct, those of embedded structs included.
func fieldsOf(in reflect.Type) map[string]field {
	all := map[string]field{}
	for f := range fieldsIn(in) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			for name, embedded := range fieldsOf(f.Type) {
				all[name] = embedded
			}
			continue
		}
		if name != "-" && f.IsExported() {
			all[name] = field{f.Type, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")}
		}
	}
	return all
}

func fieldsIn(in reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range in.NumField() {
			if !yield(in.Field(i)) {
				return
			}
		}
	}
}

// is reports a schema of another type. A schema without a type permits every one.
func is(schema map[string]any, kind string) error {
	switch given := schema["type"].(type) {
	case nil:
	case string:
		if given != kind {
			return fmt.Errorf("the schema is a %s and the field a %s", given, kind)
		}
	case []any:
		if !slices.Contains(given, any(kind)) {
			return fmt.Errorf("the schema is one of %v and the field a %s", given, kind)
		}
	}
	return nil
}
