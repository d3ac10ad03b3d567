package informer

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// overlay is what several stores of a kind hold together: of each key the object in the
// first of them that has one. An endpoint that takes another's place holds for a while
// what that one holds, too.
type overlay[T kcp.Object] struct {
	// telling keeps the events of a key in order, whichever store they come through:
	// it is held from before a change until every handler knows.
	telling sync.Mutex

	mu     sync.RWMutex
	stores []*store[T]
}

func (u *overlay[T]) all() []*store[T] {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.stores
}

// add and remove alter a copy, which readers do not have.
func (u *overlay[T]) add(s *store[T]) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stores = append(slices.Clone(u.stores), s)
}

func (u *overlay[T]) remove(s *store[T]) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stores = slices.DeleteFunc(slices.Clone(u.stores), func(x *store[T]) bool { return x == s })
}

// hidden tells whether a store before this one has the key.
func (u *overlay[T]) hidden(s *store[T], cluster, name string) bool {
	for _, x := range u.all() {
		if x == s {
			return false
		}
		if x.has(cluster, name) {
			return true
		}
	}
	return false
}

// behind is what is seen of the key where the store has nothing, and none before it.
func (u *overlay[T]) behind(s *store[T], cluster, name string) (T, bool) {
	stores := u.all()
	for _, x := range stores[slices.Index(stores, s)+1:] {
		if o, ok := x.get(cluster, name); ok {
			return o, true
		}
	}
	var none T
	return none, false
}

func (u *overlay[T]) get(cluster, name string) (T, bool) {
	for _, s := range u.all() {
		if o, ok := s.get(cluster, name); ok {
			return o, true
		}
	}
	var none T
	return none, false
}

// inCluster goes by what it has found itself: stores change meanwhile.
func (u *overlay[T]) inCluster(cluster string, wanted func(name string) bool) []T {
	var out []T
	var found map[string]bool
	for n, s := range u.all() {
		if n == 0 {
			out = s.inCluster(cluster, wanted)
			continue
		}
		if found == nil {
			found = make(map[string]bool, len(out))
		}
		for _, o := range out[len(found):] {
			found[o.GetName()] = true
		}
		out = append(out, s.inCluster(cluster, func(name string) bool { return wanted(name) && !found[name] })...)
	}
	return out
}

// each goes through one logical cluster after the other, because there may be very
// many objects.
func (u *overlay[T]) each(yield func(T) bool) {
	clusters := map[string]struct{}{}
	for _, s := range u.all() {
		for _, cluster := range s.names() {
			clusters[cluster] = struct{}{}
		}
	}
	for cluster := range clusters {
		for _, o := range u.inCluster(cluster, anyName) {
			if !yield(o) {
				return
			}
		}
	}
}
