package informer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

func person(cluster, name, version string) *v1alpha1.User {
	u := &v1alpha1.User{}
	u.Name, u.ResourceVersion, u.Annotations = name, version, map[string]string{"kcp.io/cluster": cluster}
	return u
}

// versionOnly is a compact encoding of a User.
type versionOnly string

func (v versionOnly) Decode(cluster, name string) *v1alpha1.User {
	return person(cluster, name, string(v))
}

// The number of objects varies around that at which a list becomes a map, with and without
// a compact encoding. The store and its events must match the model.
func TestStore_matchesAModel(t *testing.T) {
	t.Parallel()
	type key struct{ cluster, name string }
	for _, compact := range []bool{false, true} {
		model, told := map[key]string{}, map[key]string{}
		of := &overlay[*v1alpha1.User]{}
		var s *store[*v1alpha1.User]
		s = newStore(of, func(u *v1alpha1.User) any {
			if compact {
				return versionOnly(u.ResourceVersion)
			}
			return u
		}, func(old, new *v1alpha1.User) {
			o := new
			if o == nil {
				o = old
			}
			k := key{kcp.ClusterOf(o), o.Name}
			version, known := told[k]
			require.Equal(t, known, old != nil)
			if known {
				require.Equal(t, version, old.ResourceVersion)
			}
			held, ok := s.get(k.cluster, k.name)
			require.Equal(t, new != nil, ok, "the store has it before the handlers")
			delete(told, k)
			if new != nil {
				require.Equal(t, new, held)
				told[k] = new.ResourceVersion
			}
		}, func() {})
		random := rand.New(rand.NewPCG(1, 2))
		for step := range 3000 {
			n := []int{3, 12, 4}[step/500%3]
			k := key{fmt.Sprint("c", random.IntN(3)), fmt.Sprint("u", random.IntN(n))}
			switch random.IntN(20) {
			default:
				model[k] = strconv.Itoa(step)
				require.NoError(t, []func(any) error{s.Add, s.Update}[step%2](person(k.cluster, k.name, model[k])))
			case 1, 2, 3, 4, 5, 6, 7, 8:
				delete(model, k)
				require.NoError(t, s.Delete(person(k.cluster, k.name, "later")))
			case 9:
				model[k] = strconv.Itoa(step)
				for gone := range model {
					if random.IntN(3) == 0 {
						delete(model, gone)
					}
				}
				var all []any
				for k, version := range model {
					all = append(all, person(k.cluster, k.name, version))
				}
				require.NoError(t, s.Replace(all, ""))
			}
			require.Equal(t, model, told)
			held := map[key]string{}
			of.each(func(u *v1alpha1.User) bool {
				held[key{kcp.ClusterOf(u), u.Name}] = u.ResourceVersion
				return true
			})
			require.Equal(t, model, held)
			in := 0
			for other := range model {
				if other.cluster == k.cluster {
					in++
				}
			}
			require.Len(t, s.inCluster(k.cluster, anyName), in)
			named := s.inCluster(k.cluster, func(name string) bool { return name == k.name })
			if _, ok := model[k]; ok {
				require.Len(t, named, 1)
				require.Equal(t, k.name, named[0].Name)
			} else {
				require.Empty(t, named)
			}
		}
		s.drop(func(_, _ string) bool { return true })
		require.Empty(t, told)
		require.Empty(t, s.clusters)
	}
}

func TestStore_isFilledByTheFirstList(t *testing.T) {
	t.Parallel()
	changes, full := 0, 0
	s := newStore(&overlay[*v1alpha1.User]{}, func(u *v1alpha1.User) any { return u }, func(_, _ *v1alpha1.User) { changes++ }, func() { full++ })
	require.False(t, s.filled.Load())
	one := person("c", "u", "1")
	require.NoError(t, s.Replace([]any{one}, "1"))
	require.True(t, s.filled.Load())
	require.Equal(t, 1, changes)

	require.NoError(t, s.Replace([]any{person("c", "u", "1")}, "2"))
	require.Equal(t, 1, full)
	require.Equal(t, 1, changes, "a list that says the same is no change")
	held, _ := s.get("c", "u")
	require.Same(t, one, held, "handlers have kept it")

	require.Error(t, s.Add(&v1alpha1.Organization{}))
	require.Error(t, s.Delete(&v1alpha1.Organization{}))
	require.Error(t, s.Replace([]any{&v1alpha1.Organization{}}, "3"))
	require.Equal(t, 1, changes)
}

func TestAll_stopsWithTheCaller(t *testing.T) {
	t.Parallel()
	i := &Informer[*v1alpha1.User]{}
	s := newStore(&i.objects, func(u *v1alpha1.User) any { return u }, func(_, _ *v1alpha1.User) {}, func() {})
	for _, cluster := range []string{"a", "b"} {
		require.NoError(t, s.Add(person(cluster, "u", "1")))
	}
	require.Len(t, slices.Collect(i.All()), 2)
	seen := 0
	for range i.All() {
		seen++
		break
	}
	require.Equal(t, 1, seen)
}
