package kcpfake

import (
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Cache is a cache of the objects of one kind that is never behind.
type Cache[T kcp.Object] struct{ Server *Server }

// Get returns an object. The name of one in a namespace is "namespace/name".
func (c Cache[T]) Get(cluster, name string) (T, bool) {
	c.Server.t.Helper()
	o, none := c.empty(), *new(T)
	if namespace, in, ok := strings.Cut(name, "/"); ok {
		o.SetNamespace(namespace)
		name = in
	}
	o.SetName(name)
	if !c.Server.Read(cluster, o) {
		return none, false
	}
	return o, true
}

// InCluster returns all objects in a logical cluster, or in all for "*".
func (c Cache[T]) InCluster(cluster string) (all []T) {
	c.Server.t.Helper()
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	gvr := c.Server.learn(c.Server.encode(c.empty()))
	for _, k := range c.Server.keys(Request{Cluster: cluster, Group: gvr.Group, Resource: gvr.Resource}) {
		o := c.empty()
		require.NoError(c.Server.t, runtime.DefaultUnstructuredConverter.FromUnstructured(c.Server.objects[k].Object, o))
		all = append(all, o)
	}
	return all
}

// All goes through the objects in all logical clusters.
func (c Cache[T]) All() iter.Seq[T] { return slices.Values(c.InCluster("*")) }

func (c Cache[T]) empty() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// Break makes the nth write from now on fail, after it was carried out if late, and every other request
// succeed. It returns a func that reports whether that write was made.
func (s *Server) Break(n int, late bool) (broke func() bool) {
	made := 0
	fault := func(in Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !in.Mutating() {
			return nil
		}
		if made++; made != n {
			return nil
		}
		return apierrors.NewInternalError(errors.New(Broken))
	}
	s.FailBefore(nil)
	s.FailAfter(nil)
	if late {
		s.FailAfter(fault)
	} else {
		s.FailBefore(fault)
	}
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return made >= n
	}
}

// Broken is in the error of a write that fails by Break.
const Broken = "the write is broken"

// Did returns the Writes in the form "create users/alice in root:kedge:users".
func (s *Server) Did() (did []string) {
	for _, w := range s.Writes() {
		if w.Name == "" {
			var o struct{ Metadata struct{ Name string } }
			_ = json.Unmarshal(w.Body, &o)
			w.Name = o.Metadata.Name
		}
		did = append(did, w.String())
	}
	return did
}
