package bootstrap

import (
	"testing"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestExtends_isTrueForTheSchemaOfANewerHubOnly(t *testing.T) {
	t.Parallel()
	schema := func(name, spec string) *kcpapisv1alpha1.APIResourceSchema {
		return &kcpapisv1alpha1.APIResourceSchema{
			ObjectMeta: metav1.ObjectMeta{Name: name + ".things.example.com"},
			Spec: kcpapisv1alpha1.APIResourceSchemaSpec{Versions: []kcpapisv1alpha1.APIResourceVersion{{
				Name: "v1", Schema: runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"spec":` + spec + `}}`)},
			}}},
		}
	}
	const (
		one   = `{"type":"object","properties":{"a":{"type":"string"}}}`
		other = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}`
		two   = `{"type":"object","properties":{"a":{"type":"string","maxLength":7},"b":{"type":"string"}}}`
		any   = `{"type":"object","properties":{"a":{"type":"string"},"c":{"x-kubernetes-int-or-string":true}}}`
		short = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"object"}}}}`
		list  = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"object",
			"properties":{"c":{"type":"string"}}}}}}`
		values = `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"object",
			"properties":{"c":{"type":"string"}}}}}}`
		value = `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"object"}}}}`
	)
	own := schema("v261126-aaaaaaa", one)
	for name, c := range map[string]struct {
		held, own *kcpapisv1alpha1.APIResourceSchema
		want      bool
	}{
		"a field more":                       {schema("v261127-bbbbbbb", two), own, true},
		"a field more, made on the same day": {schema("v261126-bbbbbbb", two), own, true},
		"a field that was removed since":     {schema("v261125-bbbbbbb", two), own, false},
		"the same fields":                    {schema("v261127-bbbbbbb", one), own, false},
		"a field of another type":            {schema("v261127-bbbbbbb", other), own, false},
		"a field less":                       {schema("v261127-bbbbbbb", one), schema("v261126-aaaaaaa", two), false},
		"a field more in a list":             {schema("v261127-bbbbbbb", list), schema("v261126-aaaaaaa", short), true},
		"a field less in a list":             {schema("v261127-bbbbbbb", short), schema("v261126-aaaaaaa", list), false},
		"a field more in a map":              {schema("v261127-bbbbbbb", values), schema("v261126-aaaaaaa", value), true},
		"a field less in a map":              {schema("v261127-bbbbbbb", value), schema("v261126-aaaaaaa", values), false},
		"a field less of several types":      {schema("v261127-bbbbbbb", list), schema("v261126-aaaaaaa", any), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := extends(c.held, c.own)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	_, err := extends(schema("v261127-bbbbbbb", `7`), own)
	require.ErrorContains(t, err, "v261127-bbbbbbb")
}
