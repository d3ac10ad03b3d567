package informer

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestSizeOf_countsWhatAValueRefersTo(t *testing.T) {
	t.Parallel()
	word := reflect.TypeFor[uintptr]().Size()
	type both struct {
		text string
		list []int32
	}
	for name, c := range map[string]struct {
		value any
		want  uintptr
	}{
		"number":       {7, 0},
		"text":         {"seven77", 7},
		"list":         {make([]int32, 2, 5), 20},
		"texts":        {[]string{"a", "bc"}, 2*2*word + 3},
		"pointer":      {&both{"abc", []int32{1}}, 5*word + 3 + 4},
		"nil pointer":  {(*both)(nil), 0},
		"map":          {map[string]string{"key": "value"}, 4*word + 8},
		"interface":    {[]any{"abc"}, 2*word + 2*word + 3},
		"time":         {time.Now(), 0},
		"shared value": {unique.Make(strings.Repeat("x", 100)), 0},
	} {
		require.Equal(t, c.want, sizeOf(reflect.ValueOf(c.value)), name)
	}
}

func TestUsage_isThatOfASampleTimesTheNumber(t *testing.T) {
	t.Parallel()
	i := New(nil, Options[*v1alpha1.User]{})
	objects, bytes := i.Usage()
	require.Zero(t, objects)
	require.Zero(t, bytes)
	s := newStore(&i.objects, i.prepare, i.notify, func() {})
	one := 0.0
	for n := range 5 * sampled {
		require.NoError(t, s.Add(person(fmt.Sprintf("cluster-%03d", n/20), fmt.Sprintf("name-%04d", n), "1")))
		objects, bytes = i.Usage()
		require.Equal(t, n+1, objects)
		if n == 0 {
			one = bytes
			require.Greater(t, one, float64(reflect.TypeFor[v1alpha1.User]().Size()))
		}
		require.InEpsilon(t, one*float64(n+1), bytes, 1e-9, "all objects have the same size")
	}
}

func TestOnAge_isTheTimeSinceTheLastWrite(t *testing.T) {
	t.Parallel()
	at := func(second int) metav1.Time { return metav1.NewTime(time.Unix(int64(second), 0)) }
	deleted := at(80)
	for name, c := range map[string]struct {
		change func(*v1alpha1.User)
		want   time.Duration
	}{
		"created": {func(*v1alpha1.User) {}, 90 * time.Second},
		"changed": {func(u *v1alpha1.User) {
			first, last := at(50), at(60)
			u.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &last}, {Time: &first}, {}}
		}, 40 * time.Second},
		"deleted":          {func(u *v1alpha1.User) { u.DeletionTimestamp = &deleted }, 20 * time.Second},
		"kcp's clock wins": {func(u *v1alpha1.User) { u.CreationTimestamp = at(105) }, 0},
	} {
		var told []time.Duration
		i := New(nil, Options[*v1alpha1.User]{OnAge: func(d time.Duration) { told = append(told, d) }})
		s, ok := i.storeOf(newStore(&i.objects, i.prepare, i.notify, func() {})).(aged[*v1alpha1.User])
		require.True(t, ok)
		s.now = func() time.Time { return time.Unix(100, 0) }
		u := person("cluster", "name", "1")
		u.CreationTimestamp = at(10)
		c.change(u)
		require.NoError(t, s.Replace([]any{u.DeepCopy()}, ""))
		require.Empty(t, told, "%s: a list has no age", name)
		u.ResourceVersion = "2"
		require.NoError(t, s.Update(u))
		require.Equal(t, []time.Duration{c.want}, told, name)
		require.Error(t, s.Add(&v1alpha1.Bot{}))
		require.Len(t, told, 1)
	}
}

func TestLargest_isTheShareOfOneLogicalCluster(t *testing.T) {
	t.Parallel()
	i := New(nil, Options[*v1alpha1.User]{})
	require.Zero(t, i.Largest())
	s := newStore(&i.objects, i.prepare, i.notify, func() {})
	for n := range 20 {
		require.NoError(t, s.Add(person(fmt.Sprintf("cluster-%02d", n), "one", "1")))
	}
	one := i.Largest()
	require.NotZero(t, one)
	for n := range 2 * sampled {
		require.NoError(t, s.Add(person("flooded", fmt.Sprintf("n%02d", n%90)+fmt.Sprint(n/90), "1")))
	}
	require.InEpsilon(t, 2*sampled*one, i.Largest(), 0.05)
	// Few objects that are large count as well.
	large := person("cluster-07", "two", "1")
	large.Spec.DisplayName = strings.Repeat("x", 1<<20)
	require.NoError(t, s.Add(large))
	require.NoError(t, s.Add(person("cluster-07", "three", "1")))
	require.Greater(t, i.Largest(), float64(1<<20))
}
