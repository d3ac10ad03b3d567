package contract

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompare_findsEveryDifference(t *testing.T) {
	t.Parallel()
	c, err := Parse(`
openapi: 3.1.0
components:
  schemas:
    Thing:
      type: object
      required: [name, at]
      properties:
        name: {type: string}
        at: {type: string, format: date-time}
        parts: {type: array, items: {type: object, required: [used], properties: {used: {type: boolean}}}}
        size: {anyOf: [{type: "null"}, {type: integer}]}
        raw: {type: [object, "null"]}
`)
	require.NoError(t, err)
	type part struct {
		Used bool `json:"used"`
	}
	type inner struct {
		Name string    `json:"name"`
		At   time.Time `json:"at"`
	}
	type raw struct {
		Raw json.RawMessage `json:"raw,omitempty"`
	}
	for want, in := range map[string]any{
		"": struct {
			inner
			raw
			Parts []part `json:"parts,omitempty"`
			Size  *int32 `json:"size,omitempty"`
		}{},
		"the type has no field ": struct{ inner }{},
		"the schema has no property more": struct {
			inner
			raw
			Parts []part `json:"parts,omitempty"`
			Size  int    `json:"size,omitempty"`
			More  string `json:"more"`
		}{},
		"size is required on one side only": struct {
			inner
			raw
			Parts []part `json:"parts,omitempty"`
			Size  int    `json:"size"`
		}{},
		"size: the schema is a integer and the field a string": struct {
			inner
			raw
			Parts []part `json:"parts,omitempty"`
			Size  string `json:"size,omitempty"`
		}{},
		"parts: the type has no field used": struct {
			inner
			raw
			Parts []struct{} `json:"parts,omitempty"`
			Size  int        `json:"size,omitempty"`
		}{},
	} {
		err := c.compare("/components/schemas/Thing", reflect.TypeOf(in), false)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
