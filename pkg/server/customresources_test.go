package server

import (
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
)

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
