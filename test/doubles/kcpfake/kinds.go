package kcpfake

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// kinds maps resources to kinds.
type kinds map[schema.GroupVersionResource]string

// newKinds knows what the hub reads and writes.
func newKinds() kinds {
	known := kinds{}
	for gvk, of := range kcp.NewScheme().AllKnownTypes() {
		_, object := reflect.New(of).Interface().(metav1.Object)
		if object && gvk.Version != runtime.APIVersionInternal {
			known[gvk.GroupVersion().WithResource(kcp.Plural(gvk.Kind))] = gvk.Kind
		}
	}
	return known
}

// namespaced reports whether the objects of a resource have a namespace. Those of groups
// that are not built in have none.
func namespaced(gvr schema.GroupVersionResource) bool {
	switch {
	case gvr.Group == "":
		return gvr.Resource != "namespaces" && gvr.Resource != "nodes" && gvr.Resource != "persistentvolumes"
	case strings.HasSuffix(gvr.Group, "rbac.authorization.k8s.io"):
		return !strings.HasPrefix(gvr.Resource, "cluster")
	}
	return gvr.Group == "coordination.k8s.io" || gvr.Group == "apps"
}

// discovery answers the discovery of a group and version.
func (s *Server) discovery(in Request) (any, error) {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: in.groupVersion().String(),
	}
	for gvr, kind := range s.kinds {
		if gvr.GroupVersion() == in.groupVersion() {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: gvr.Resource, Kind: kind, Namespaced: namespaced(gvr)})
		}
	}
	if len(list.APIResources) == 0 {
		return nil, notServed(list.GroupVersion)
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// encode turns an object that a test gives into the form that is kept. The kind comes
// from the scheme where the object does not name it.
func (s *Server) encode(o runtime.Object) *unstructured.Unstructured {
	s.t.Helper()
	raw, err := json.Marshal(o)
	require.NoError(s.t, err)
	u := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(s.t, utiljson.Unmarshal(raw, &u.Object))
	if u.GetKind() == "" {
		of, _, err := s.scheme.ObjectKinds(o)
		if runtime.IsNotRegisteredError(err) {
			of, _, err = scheme.Scheme.ObjectKinds(o)
		}
		require.NoError(s.t, err)
		u.SetGroupVersionKind(of[0])
	}
	s.learn(u)
	return u
}

// learn remembers the kind of an object.
func (s *Server) learn(u *unstructured.Unstructured) schema.GroupVersionResource {
	gvk := u.GroupVersionKind()
	for gvr, kind := range s.kinds {
		if gvr.GroupVersion() == gvk.GroupVersion() && kind == gvk.Kind {
			return gvr
		}
	}
	gvr := gvk.GroupVersion().WithResource(kcp.Plural(gvk.Kind))
	s.kinds[gvr] = gvk.Kind
	return gvr
}

// assign replaces what an object points to by what another of its type points to.
func assign(into, from runtime.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
}

// tableOf is a list of names, as "kubectl get -o name" asks for.
func tableOf(got any) any {
	list, ok := got.(*unstructured.UnstructuredList)
	if !ok {
		return got
	}
	table := metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ListMeta:          metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()},
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}},
	}
	for _, item := range list.Items {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{item.GetName()}})
	}
	return table
}
