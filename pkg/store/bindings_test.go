package store_test

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestBindings_writeOneObject(t *testing.T) {
	t.Parallel()
	f := kcpfake.New(t)
	b := store.NewBindings(f.Clients().FailFast())
	want := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}}
	want.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:kedge:providers:acme", Name: "widgets"}
	made, err := b.CreateBinding(t.Context(), "one", want, false)
	require.NoError(t, err)
	require.NotEmpty(t, made.UID)
	_, err = b.CreateBinding(t.Context(), "one", want, false)
	require.True(t, errs.Is(err, errs.AlreadyExists), err)

	stale := made.DeepCopy()
	made.Spec.PermissionClaims = []kcpapisv1alpha2.AcceptablePermissionClaim{{State: kcpapisv1alpha2.ClaimAccepted}}
	made, err = b.UpdateBinding(t.Context(), "one", made, false)
	require.NoError(t, err)
	stale.Annotations = map[string]string{"a": "b"}
	_, err = b.UpdateBinding(t.Context(), "one", stale, false)
	require.True(t, errs.Is(err, errs.Conflict), err)

	other := made.DeepCopy()
	other.UID = "another"
	require.True(t, errs.Is(b.DeleteBinding(t.Context(), "one", other), errs.Conflict))
	require.NoError(t, b.DeleteBinding(t.Context(), "one", made))
	require.NoError(t, b.DeleteBinding(t.Context(), "one", made), "it is gone already")
}
