package server

import (
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
)

func TestPathsOfDefinitions(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":                            true,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/":                           true,
		"/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions/widgets.example.com":   true,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com/status": true,
		"/apis/apiextensions.k8s.io/v1":                                                      false,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitionsx":                           false,
		"/apis/example.com/v1/customresourcedefinitions":                                     false,
		"/api/v1/namespaces/default/configmaps":                                              false,
		"/apis/example.com/v1/namespaces/customresourcedefinitions/ws":                       false,
	} {
		require.Equal(t, want, ofDefinitions(path), path)
	}
}

func TestAnAnnotationIsSetOnTheObjectThatWasSeenOnly(t *testing.T) {
	t.Parallel()
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.UID, ws.ResourceVersion = "u", "7"
	patch, err := annotation(ws, "a", `b"`)
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"uid":"u","resourceVersion":"7","annotations":{"a":"b\""}}}`, string(patch))
	patch, err = annotation(ws, "a", "")
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"uid":"u","resourceVersion":"7","annotations":{"a":null}}}`, string(patch))
}
