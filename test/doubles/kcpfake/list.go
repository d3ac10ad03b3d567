package kcpfake

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// keys are the keys of the objects that a list is about, in order.
func (s *Server) keys(in Request) []key {
	var all []key
	for k := range s.objects {
		if covers(in, k) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, key.compare)
	return all
}

// covers reports whether a list or watch is about the object with that key.
func covers(in Request, k key) bool {
	return k.group == in.Group && k.resource == in.Resource &&
		(in.Cluster == logicalcluster.Wildcard.String() || k.cluster == in.Cluster) &&
		(in.Namespace == "" || k.namespace == in.Namespace)
}

// selector is a label selector and a field selector. A field may be any string of an
// object.
type selector struct {
	labels labels.Selector
	fields fields.Selector
}

func selectorOf(in Request) (selector, error) {
	l, err := labels.Parse(in.Query.Get("labelSelector"))
	if err != nil {
		return selector{}, apierrors.NewBadRequest(err.Error())
	}
	f, err := fields.ParseSelector(in.Query.Get("fieldSelector"))
	if err != nil {
		return selector{}, apierrors.NewBadRequest(err.Error())
	}
	return selector{l, f}, nil
}

func (s selector) matches(o *unstructured.Unstructured) bool {
	if o == nil || !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	named := fields.Set{}
	for _, r := range s.fields.Requirements() {
		named[r.Field], _, _ = unstructured.NestedString(o.Object, strings.Split(r.Field, ".")...)
	}
	return s.fields.Matches(named)
}

// list answers a list. A page is about the objects that exist when it is asked for.
func (s *Server) list(in Request) (*unstructured.UnstructuredList, error) {
	selected, err := selectorOf(in)
	if err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(in.Query.Get("limit"))
	if err != nil && in.Query.Get("limit") != "" {
		return nil, apierrors.NewBadRequest("limit is not a number")
	}
	after, err := base64.RawURLEncoding.DecodeString(in.Query.Get("continue"))
	if err != nil {
		return nil, apierrors.NewBadRequest("continue key is not valid")
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	list.SetAPIVersion(in.groupVersion().String())
	list.SetKind(s.kinds[in.groupVersion().WithResource(in.Resource)] + "List")
	list.SetResourceVersion(strconv.Itoa(s.version))
	keys := s.keys(in)
	if len(after) > 0 {
		last := strings.SplitN(string(after), "/", 3)
		if len(last) != 3 {
			return nil, apierrors.NewBadRequest("continue key is not valid")
		}
		from := key{cluster: last[0], namespace: last[1], name: last[2]}
		keys = slices.DeleteFunc(keys, func(k key) bool { return k.compare(from) <= 0 })
	}
	var end key
	for _, k := range keys {
		if !selected.matches(s.objects[k]) {
			continue
		}
		if limit > 0 && len(list.Items) == limit {
			list.SetContinue(base64.RawURLEncoding.EncodeToString([]byte(end.cluster + "/" + end.namespace + "/" + end.name)))
			break
		}
		list.Items, end = append(list.Items, *s.converted(in, s.objects[k])), k
	}
	return list, nil
}
