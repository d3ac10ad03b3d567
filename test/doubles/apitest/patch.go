package apitest

import (
	"context"
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Patch returns the JSON merge patch of an edit of held, as the store sends it, or nil if nothing
// changes. version is that of the object in kcp, which match is called with.
func Patch[T runtime.Object](ctx context.Context, held T, version string, match func(string) error, edit func(context.Context, T) error) (patch map[string]any, err error) {
	wanted := held.DeepCopyObject().(T)
	if err := edit(ctx, wanted); err != nil {
		return nil, err
	}
	if err := Judge(match, version); err != nil {
		return nil, err
	}
	return difference(held, wanted)
}

// Annotate is Patch for the annotations of a Workspace.
func Annotate(w tenancy.Workspace, held map[string]string, version string, match func(string) error, edit func(tenancy.Workspace, map[string]string) error) (annotations map[string]any, err error) {
	wanted := map[string]string{}
	for name, value := range held {
		wanted[name] = value
	}
	if err := edit(w, wanted); err != nil {
		return nil, err
	}
	if err := Judge(match, version); err != nil {
		return nil, err
	}
	return difference(held, wanted)
}

func difference(from, to any) (changes map[string]any, err error) {
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	raw, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &changes); err != nil || len(changes) == 0 {
		return nil, err
	}
	return changes, nil
}

// MergePatched returns a copy of an object with a JSON merge patch (RFC 7396) applied and the
// next resource version.
func MergePatched[T any](t testing.TB, object *T, patch any) *T {
	t.Helper()
	before, err := json.Marshal(object)
	require.NoError(t, err)
	changes, err := json.Marshal(patch)
	require.NoError(t, err)
	after, err := jsonpatch.MergePatch(before, changes)
	require.NoError(t, err)
	out := new(T)
	require.NoError(t, json.Unmarshal(after, out))
	if o, ok := any(out).(metav1.Object); ok {
		o.SetResourceVersion(Next(o.GetResourceVersion()))
	}
	return out
}
