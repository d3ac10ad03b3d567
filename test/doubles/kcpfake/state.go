package kcpfake

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Put creates or replaces an object, its status and metadata included, and returns
// it as it is kept. It needs no write of the hub: a test plays kcp's part or a
// tenant's with it. UID and creationTimestamp are kept where the object names none.
func (s *Server) Put(cluster string, o runtime.Object) *unstructured.Unstructured {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.encode(o)
	return s.replace(s.keyOf(cluster, u), u).DeepCopy()
}

// Remove removes the object that has the kind, namespace and name of the one given,
// whatever its finalizers. It reports whether there was one.
func (s *Server) Remove(cluster string, o runtime.Object) bool {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keyOf(cluster, s.encode(o))
	_, ok := s.objects[k]
	if ok {
		s.remove(k)
	}
	return ok
}

// Read reads into an object what is kept of its kind, namespace and name. It tells
// whether there is one.
func (s *Server) Read(cluster string, into runtime.Object) bool {
	s.t.Helper()
	s.mu.Lock()
	u := s.encode(into)
	o, ok := s.objects[s.keyOf(cluster, u)]
	if ok {
		o = o.DeepCopy()
	}
	s.mu.Unlock()
	if !ok {
		return false
	}
	raw, err := o.MarshalJSON()
	require.NoError(s.t, err)
	if u, ok := into.(*unstructured.Unstructured); ok {
		require.NoError(s.t, u.UnmarshalJSON(raw))
		return true
	}
	// Fields that are not kept must not survive in the caller's object.
	fresh, err := s.scheme.New(o.GroupVersionKind())
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(raw, fresh))
	assign(into, fresh)
	return true
}

// List returns all objects of a resource in a logical cluster, in the order of
// namespace and name.
func (s *Server) List(cluster, group, resource string) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, k := range s.keys(Request{Cluster: cluster, Group: group, Resource: resource}) {
		all = append(all, s.objects[k].DeepCopy())
	}
	return all
}

// Get returns the object that a GET of the path would return, or nil.
func (s *Server) Get(path string) *unstructured.Unstructured {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[s.keyAt(path)]; ok {
		return o.DeepCopy()
	}
	return nil
}

// Edit changes the object that a GET of the path would return, in a new version. Its
// metadata and status may be changed too. It reports whether there is one.
func (s *Server) Edit(path string, f func(o *unstructured.Unstructured)) bool {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keyAt(path)
	o, ok := s.objects[k]
	if ok {
		o = o.DeepCopy()
		f(o)
		s.replace(k, o)
	}
	return ok
}

// keyAt is the key of the object with that path.
func (s *Server) keyAt(path string) key {
	s.t.Helper()
	in, err := parse(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}, nil)
	require.NoError(s.t, err)
	return keyIn(in)
}
