package informer

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const (
	// sampled is the number of objects of an endpoint, or of a logical cluster, by which the size of all is
	// estimated.
	sampled = 64
	// compared is the number of logical clusters of an endpoint that Largest compares.
	compared = 8
)

// Usage returns the number of objects in the cache, and an estimate of the memory that they take in
// bytes: that of a sample of them. Memory that objects share counts for each.
func (i *Informer[T]) Usage() (objects int, bytes float64) {
	for _, s := range i.objects.all() {
		n, size := s.usage()
		objects, bytes = objects+n, bytes+size
	}
	return objects, bytes
}

func (s *store[T]) usage() (objects int, bytes float64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var size uintptr
	n := 0
	for cluster, in := range s.clusters {
		objects += in.len()
		// The iteration over a map begins anywhere.
		for name, stored := range in.each {
			if n == sampled {
				break
			}
			n++
			size += uintptr(len(cluster)) + uintptr(len(name)) + sizeOf(reflect.ValueOf(stored))
		}
	}
	if n == 0 {
		return 0, 0
	}
	return objects, float64(size) / float64(n) * float64(objects)
}

// Largest returns an estimate of the memory in bytes that the objects of one logical cluster take: the most
// among the logical clusters with the most objects.
func (i *Informer[T]) Largest() (bytes float64) {
	for _, s := range i.objects.all() {
		bytes = max(bytes, s.largest())
	}
	return bytes
}

func (s *store[T]) largest() (bytes float64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var most []*byName[any]
	for _, in := range s.clusters {
		most = append(most, in)
		slices.SortFunc(most, func(a, b *byName[any]) int { return cmp.Compare(b.len(), a.len()) })
		most = most[:min(len(most), compared)]
	}
	for _, in := range most {
		var size uintptr
		n := 0
		for name, stored := range in.each {
			if n == sampled {
				break
			}
			n++
			size += uintptr(len(name)) + sizeOf(reflect.ValueOf(stored))
		}
		if n > 0 {
			bytes = max(bytes, float64(size)/float64(n)*float64(in.len()))
		}
	}
	return bytes
}

// sizeOf returns the memory that a value refers to. Locations of times and interned values belong to
// many objects.
func sizeOf(v reflect.Value) (size uintptr) {
	switch v.Kind() {
	case reflect.String:
		return uintptr(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return v.Elem().Type().Size() + sizeOf(v.Elem())
	case reflect.Slice:
		size = uintptr(v.Cap()) * v.Type().Elem().Size()
		for i := range v.Len() {
			size += sizeOf(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			size += each.Key().Type().Size() + sizeOf(each.Key()) + each.Value().Type().Size() + sizeOf(each.Value())
		}
	case reflect.Struct:
		if t := v.Type(); t == reflect.TypeFor[time.Time]() || t.PkgPath() == "unique" {
			return 0
		}
		for i := range v.NumField() {
			size += sizeOf(v.Field(i))
		}
	default:
		// Numbers, and arrays of them, refer to nothing.
	}
	return size
}

// aged tells the age of what a watch delivers.
type aged[T kcp.Object] struct {
	*store[T]
	now func() time.Time
	age func(time.Duration)
}

// Add implements cache.ReflectorStore.
func (a aged[T]) Add(o any) error { return a.Update(o) }

// Update implements cache.ReflectorStore.
func (a aged[T]) Update(o any) error {
	object, ok := o.(T)
	if !ok {
		return a.store.Update(o)
	}
	// The store removes the fields that tell the time.
	written := writtenAt(object)
	err := a.store.Update(o)
	a.age(max(0, a.now().Sub(written)))
	return err
}

// writtenAt is the time of the last write of an object, in whole seconds.
func writtenAt(o kcp.Object) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	if deleted := o.GetDeletionTimestamp(); deleted != nil && deleted.After(at) {
		at = deleted.Time
	}
	return at
}

// storeOf is what a reflector writes to.
func (i *Informer[T]) storeOf(s *store[T]) cache.ReflectorStore {
	if i.options.OnAge == nil {
		return s
	}
	return aged[T]{store: s, now: time.Now, age: i.options.OnAge}
}
