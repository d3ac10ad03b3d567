package bootstrap

import (
	"testing"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestMissing_namesAFieldThatAnEndpointPrunes(t *testing.T) {
	t.Parallel()
	own := &kcpapisv1alpha1.APIResourceSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "v261127-aaaaaaa.things.example.com"},
		Spec: kcpapisv1alpha1.APIResourceSchemaSpec{
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing"},
			Versions: []kcpapisv1alpha1.APIResourceVersion{{Name: "v1", Schema: runtime.RawExtension{Raw: []byte(
				`{"type":"object","properties":{"metadata":{"type":"object"},"spec":{"type":"object","properties":{
					"a":{"type":"string"},"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}}}}}`,
			)}}},
		},
	}
	document := func(spec string) []byte {
		return []byte(`{"components":{"schemas":{
			"com.example.v1.Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Thing"}],"properties":{
				"metadata":{"allOf":[{"$ref":"#/components/schemas/io.k8s.ObjectMeta"}],"default":{}},"spec":` + spec + `}},
			"io.k8s.DeleteOptions":{"type":"object","x-kubernetes-group-version-kind":[{"kind":"DeleteOptions","version":"v1"},{"kind":"DeleteOptions","version":"v2"}]},
			"io.k8s.ObjectMeta":{"type":"object"}}}}`)
	}
	for spec, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}}}`: "",
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"object","properties":{
			"c":{"type":"string"},"later":{"type":"string"}}}}}}`: "",
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"object"}}}}`:                own.Name + ": spec.b[].c",
		`{"type":"object","properties":{"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}}}`: own.Name + ": spec.a",
	} {
		served, err := documented(document(spec))
		require.NoError(t, err)
		got, err := missing([]*kcpapisv1alpha1.APIResourceSchema{own}, served)
		require.NoError(t, err)
		require.Equal(t, want, got, spec)
	}
	served, err := documented([]byte(`{"components":{}}`))
	require.NoError(t, err)
	got, err := missing([]*kcpapisv1alpha1.APIResourceSchema{own}, served)
	require.NoError(t, err)
	require.Contains(t, got, own.Name, "a kind that is not served")
	_, err = documented([]byte(`7`))
	require.ErrorContains(t, err, "OpenAPI")
	_, err = missing([]*kcpapisv1alpha1.APIResourceSchema{{Spec: kcpapisv1alpha1.APIResourceSchemaSpec{Versions: []kcpapisv1alpha1.APIResourceVersion{
		{Schema: runtime.RawExtension{Raw: []byte(`7`)}},
	}}}}, served)
	require.Error(t, err)
}
