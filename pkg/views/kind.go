package views

import (
	"maps"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Key names an object in a logical cluster.
type Key struct{ Cluster, Name string }

func keyOf(o kcp.Object) Key { return Key{kcp.ClusterOf(o), o.GetName()} }

// Kind is what the hub watches of one kind: it lists the objects, and tells subscribers of
// their changes. The objects are shared: read only.
type Kind[T kcp.Object] struct {
	*informer.Informer[T]
	row[T]
	views *Views
	// publishing is held while subscribers are told of a change.
	publishing  sync.Mutex
	subscribers []func(Change[T])
	count       atomic.Int64
}

// row is what differs from kind to kind.
type row[T kcp.Object] struct {
	// selector, transform and encode are those of the informer.
	selector  string
	transform func(T)
	encode    func(T) informer.Compact[T]
	// belongs reports whether the objects of a logical cluster are of this kind; nil where all are.
	// The views ignore the other ones.
	belongs func(cluster string) bool
	// hides reports objects that are not of this kind whatever their logical cluster is; nil for none.
	// An object that stops to be hidden is an addition.
	hides func(o T) bool
	// indexes find the objects by something else than their names.
	indexes []indexed[T]
	// change changes what else the views derive from the objects; nil for nothing.
	change func(cluster string, old, new T)
	// refs returns what callers of Await name to be woken by a change of the object; nil for refsIn.
	refs func(cluster string, o T) []tenancy.Ref
}

// in is for a kind that belongs in one logical cluster.
func in(only string) func(string) bool {
	return func(cluster string) bool { return cluster == only }
}

// newKind returns a kind with an informer of its own. name is that of its view, in metrics.
func newKind[T kcp.Object](v *Views, c *kcp.Clients, name string, r row[T]) *Kind[T] {
	k := part(v, informer.New(c, informer.Options[T]{Selector: r.selector, Transform: r.transform, Encode: r.encode, OnAge: v.metrics.age(name)}), r)
	v.metrics.add(name, k)
	return k
}

// part returns a kind that shares its informer with another one.
func part[T kcp.Object](v *Views, i *informer.Informer[T], r row[T]) *Kind[T] {
	k := &Kind[T]{Informer: i, row: r, views: v}
	if k.refs == nil {
		k.refs = k.refsIn
	}
	i.OnChange(k.handle)
	return k
}

// handle is the handler of the informer: it changes the views, publishes the change, and wakes
// those who wait for it.
func (k *Kind[T]) handle(old, new T) {
	old, new = k.shown(old), k.shown(new)
	if !exists(old) && !exists(new) {
		return
	}
	c := Change[T]{Old: old, New: new}
	cluster := c.Cluster()
	if k.belongs != nil && !k.belongs(cluster) {
		return
	}
	for _, x := range k.indexes {
		x.update(old, new)
	}
	if k.change != nil {
		k.change(cluster, old, new)
	}
	switch {
	case !exists(old):
		k.count.Add(1)
	case !exists(new):
		k.count.Add(-1)
	}
	k.publish(cluster, c)
}

// publish tells subscribers of a change of what the views answer, and wakes those who wait for it.
func (k *Kind[T]) publish(cluster string, c Change[T]) {
	k.publishing.Lock()
	defer k.publishing.Unlock()
	for _, f := range k.subscribers {
		f(c)
	}
	k.views.waiters.touch(func() []tenancy.Ref { return k.refs(cluster, c.Object()) })
}

// shown returns the object, or none if the kind hides it.
func (k *Kind[T]) shown(o T) T {
	var none T
	if exists(o) && k.hides != nil && k.hides(o) {
		return none
	}
	return o
}

// refsIn is for what the hub watches in the workspaces of Organizations and in child
// Workspaces; a binding may name the User whom it serves.
func (k *Kind[T]) refsIn(cluster string, o T) []tenancy.Ref {
	refs := k.views.clusterRefs(cluster)
	if user := o.GetLabels()[v1alpha1.UserLabel]; user != "" {
		refs = append(refs, tenancy.UserRef(user))
	}
	return refs
}

// OnChange subscribes to all changes. It is called while the process is wired.
func (k *Kind[T]) OnChange(f func(Change[T])) { k.subscribers = append(k.subscribers, f) }

// Follow subscribes to the changes of the fields: Change.Moved of them is true.
func (k *Kind[T]) Follow(of Fields[T], f func(Change[T])) {
	k.OnChange(func(c Change[T]) {
		if c.Moved(of) {
			f(c)
		}
	})
}

// Keys returns the keys of all objects, in no order.
func (k *Kind[T]) Keys() []Key {
	keys := make([]Key, 0, k.count.Load())
	for o := range k.All() {
		if key := keyOf(o); exists(k.shown(o)) && (k.belongs == nil || k.belongs(key.Cluster)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Fields returns the fields of an object that something follows from.
type Fields[T any] func(o T) any

// Metadata returns labels, finalizers, and the annotations that are not among but.
func Metadata(o metav1.Object, but ...string) any {
	annotations := maps.Clone(o.GetAnnotations())
	for _, name := range but {
		delete(annotations, name)
	}
	return []any{o.GetLabels(), o.GetFinalizers(), annotations}
}

// Change is one change of one object. Old is nil for an addition, New is nil for a
// removal. Both are shared and read only.
type Change[T kcp.Object] struct{ Old, New T }

func exists[T kcp.Object](o T) bool {
	var none T
	return any(o) != any(none)
}

// Object returns New, or Old where the object was removed.
func (c Change[T]) Object() T {
	if exists(c.New) {
		return c.New
	}
	return c.Old
}

// Cluster returns the logical cluster of the object.
func (c Change[T]) Cluster() string { return kcp.ClusterOf(c.Object()) }

// Added reports whether New is an object that was not there before. It may replace one of the same
// name, which then is Removed.
func (c Change[T]) Added() bool { return exists(c.New) && !c.same() }

// Removed reports whether Old is not there any more.
func (c Change[T]) Removed() bool { return exists(c.Old) && !c.same() }

func (c Change[T]) same() bool {
	return exists(c.Old) && exists(c.New) && c.Old.GetUID() == c.New.GetUID()
}

// Terminating reports whether the deletion of the object began.
func (c Change[T]) Terminating() bool {
	return c.same() && c.Old.GetDeletionTimestamp().IsZero() != c.New.GetDeletionTimestamp().IsZero()
}

// Differs reports whether the object was there before, with other fields.
func (c Change[T]) Differs(of Fields[T]) bool {
	return c.same() && !equality.Semantic.DeepEqual(of(c.Old), of(c.New))
}

// Ends reports whether something that followed from the fields may not follow any more: the object
// was removed, its deletion began, or the fields differ.
func (c Change[T]) Ends(of Fields[T]) bool {
	return c.Removed() || c.Terminating() || c.Differs(of)
}

// Moved reports whether something else may follow from the fields than before: the object was added
// or removed, its deletion began, or the fields differ.
func (c Change[T]) Moved(of Fields[T]) bool { return c.Added() || c.Ends(of) }
