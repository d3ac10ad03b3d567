package views

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestIndex_followsRandomEventsAsAModel(t *testing.T) {
	t.Parallel()
	x := newIndex(func(u *v1alpha1.User) []string { return []string{u.Spec.Issuer, u.Spec.Subject} })
	random := rand.New(rand.NewPCG(1, 2))
	model := map[string]*v1alpha1.User{}
	for range 4000 {
		name := fmt.Sprint("u", random.IntN(6))
		old := model[name]
		if old != nil && random.IntN(3) == 0 {
			delete(model, name)
			x.update(old.DeepCopy(), nil)
		} else {
			model[name] = user("u", name, fmt.Sprint("s", random.IntN(4)), int64(random.IntN(3)))
			model[name].Spec.Issuer = fmt.Sprint("i", random.IntN(2))
			x.update(old, model[name])
		}
		keys := map[string][]*v1alpha1.User{}
		for _, u := range model {
			keys[u.Spec.Issuer], keys[u.Spec.Subject] = append(keys[u.Spec.Issuer], u), append(keys[u.Spec.Subject], u)
		}
		require.Len(t, x.first, len(keys), "nothing is left of a key without an object")
		for key, want := range keys {
			require.ElementsMatch(t, want, x.all(key))
			one, ok := x.one(key)
			require.True(t, ok)
			for _, u := range want {
				require.False(t, u != one && older(u, one))
			}
		}
		_, ok := x.one("none")
		require.False(t, ok)
		require.Len(t, x.values(), 2*len(model))
	}
	at := metav1.Unix(1, 0)
	a, b := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: at}}, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: at}}
	require.True(t, older(a, b))
	require.False(t, older(b, a))
}
