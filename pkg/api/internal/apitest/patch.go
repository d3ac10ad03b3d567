package apitest

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergePatched returns a copy of an object with a JSON merge patch (RFC 7396) applied and the
// next resource version.
func MergePatched[T any](t testing.TB, object *T, patch any) *T {
	t.Helper()
	var target, changes any
	roundTrip(t, object, &target)
	roundTrip(t, patch, &changes)
	out := new(T)
	roundTrip(t, merge(target, changes), out)
	if o, ok := any(out).(metav1.Object); ok {
		o.SetResourceVersion(Next(o.GetResourceVersion()))
	}
	return out
}

func roundTrip(t testing.TB, from, into any) {
	t.Helper()
	raw, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if fields, ok := target.(map[string]any); ok {
		maps.Copy(out, fields)
	}
	for field, value := range changes {
		if value == nil {
			delete(out, field)
			continue
		}
		out[field] = merge(out[field], value)
	}
	return out
}
