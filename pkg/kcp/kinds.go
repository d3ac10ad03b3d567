package kcp

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// scheme has every kind that the hub reads or writes.
var scheme = sync.OnceValue(NewScheme)

// Empty returns an empty object.
func Empty[T Object]() T {
	o, _ := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return o
}

// EmptyList returns an empty list of objects.
func EmptyList[T Object]() runtime.Object {
	gvk := kindOf[T]()
	gvk.Kind += "List"
	list, err := scheme().New(gvk)
	utilruntime.Must(err)
	return list
}

// ResourceOf returns the resource of a kind.
func ResourceOf[T Object]() schema.GroupVersionResource {
	gvk := kindOf[T]()
	return gvk.GroupVersion().WithResource(Plural(gvk.Kind))
}

func kindOf[T Object]() schema.GroupVersionKind {
	found, _, err := scheme().ObjectKinds(Empty[T]())
	utilruntime.Must(err)
	return found[0]
}

// Plural returns the name of a kind's resource by the rules of English that the resources of
// Kubernetes follow.
func Plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "endpoints"):
		return name
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"):
		return name + "es"
	}
	return name + "s"
}
