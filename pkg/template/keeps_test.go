package template_test

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/pkg/template"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestKeeps_knowsBindingsOfTheTemplateAndTheHub(t *testing.T) {
	t.Parallel()
	bound := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
		"spec": map[string]any{"reference": map[string]any{"export": map[string]any{"path": "root:things", "name": "things"}}},
	}}
	keeps := template.Keeps([]*unstructured.Unstructured{bound})
	of := func(path, name string) *kcpapisv1alpha2.APIBinding {
		b := &kcpapisv1alpha2.APIBinding{}
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: path, Name: name}
		return b
	}
	require.True(t, keeps(of("root:things", "things")))
	require.True(t, keeps(of("root:kedge:providers", tenancy.ExportAccess)))
	require.False(t, keeps(of("root:others", "things")))
	require.False(t, keeps(of("root:things", "widgets")))
}
