package informer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// heard records events, and fails when one does not continue from the last.
type heard struct {
	t        *testing.T
	versions map[string]string
	events   []string
}

func (h *heard) handle(old, new *v1alpha1.User) {
	o, what := new, "change "
	switch {
	case old == nil:
		what = "add "
	case new == nil:
		o, what = old, "remove "
	}
	h.events = append(h.events, what+o.Name)
	if version, known := h.versions[o.Name]; known != (old != nil) || known && version != old.ResourceVersion {
		h.t.Errorf("%s after %q", what+o.Name, version)
	}
	delete(h.versions, o.Name)
	if new != nil {
		h.versions[o.Name] = new.ResourceVersion
	}
}

func (h *heard) store(of *overlay[*v1alpha1.User]) *store[*v1alpha1.User] {
	return newStore(of, func(u *v1alpha1.User) any { return u }, h.handle, func() {})
}

// An object that moves from one endpoint to another in the same version has not changed.
func TestOverlay_hidesChangesThatNoCallerSees(t *testing.T) {
	t.Parallel()
	of := &overlay[*v1alpha1.User]{}
	h := &heard{t: t, versions: map[string]string{}}
	old, next := h.store(of), h.store(of)
	require.NoError(t, old.Replace([]any{person("c", "same", "1"), person("c", "altered", "1"), person("c", "gone", "1")}, ""))
	require.Equal(t, []string{"add same", "add altered", "add gone"}, h.events)
	h.events = nil

	require.NoError(t, next.Replace([]any{person("c", "same", "1"), person("c", "altered", "2"), person("c", "new", "2")}, ""))
	require.Equal(t, []string{"add new"}, h.events, "the old one is believed for as long as it is there")
	h.events = nil

	old.drop(func(_, _ string) bool { return true })
	require.ElementsMatch(t, []string{"change altered", "remove gone"}, h.events, "the control: what did change is told")
	of.remove(old)
	require.Equal(t, map[string]string{"same": "1", "altered": "2", "new": "2"}, h.versions)
}

// The events of a key continue from each other, whichever endpoint they come through, and
// end with the object that is held.
func TestOverlay_ordersEventsOfTwoStores(t *testing.T) {
	t.Parallel()
	of := &overlay[*v1alpha1.User]{}
	h := &heard{t: t, versions: map[string]string{}}
	stores := []*store[*v1alpha1.User]{h.store(of), h.store(of)}
	var writers sync.WaitGroup
	for n, s := range stores {
		random := rand.New(rand.NewPCG(uint64(n), 1))
		writers.Go(func() {
			for range 3000 {
				u := person("c", fmt.Sprint("u", random.IntN(12)), strconv.Itoa(random.IntN(3)))
				if random.IntN(3) == 0 {
					_ = s.Delete(u)
				} else {
					_ = s.Update(u)
				}
			}
		})
	}
	writers.Wait()
	held := map[string]string{}
	for _, u := range of.inCluster("c", anyName) {
		require.NotContains(t, held, u.Name, "nothing is listed twice")
		held[u.Name] = u.ResourceVersion
	}
	require.Equal(t, held, h.versions)
	require.ElementsMatch(t, slices.Collect(maps.Keys(held)), func() (names []string) {
		of.each(func(u *v1alpha1.User) bool { names = append(names, u.Name); return true })
		return names
	}())

	stores[0].drop(func(_, _ string) bool { return true })
	require.Len(t, h.versions, len(stores[1].inCluster("c", anyName)))
	stores[1].drop(func(_, _ string) bool { return true })
	require.Empty(t, h.versions)
}
