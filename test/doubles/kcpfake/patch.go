package kcpfake

import (
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// appliedKey names what one field manager has applied to an object.
type appliedKey struct {
	key
	manager, subresource string
}

// patched returns an object with a merge patch or a JSON patch applied.
func patched(in Request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before, err := old.MarshalJSON()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var after []byte
	switch kind := types.PatchType(in.Header.Get("Content-Type")); kind {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, in.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(in.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if after, err = patch.Apply(before); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, in.Verb, in.groupResource(), in.Name, err.Error(), 0, false)
		}
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("patches of type %q are not supported", kind),
		}}
	}
	return decode(after)
}

// apply merges a server-side apply into an object, which is nil where there is none.
// Maps are merged, lists are atomic, and a field that the manager does not name any
// more is removed. Every apply is by force, because no other owner of a field is known.
func (s *Server) apply(in Request, k key, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manager := in.Query.Get("fieldManager")
	if manager == "" {
		return nil, invalid(in, "fieldManager", "is required for apply patch")
	}
	if in.Query.Get("force") != "true" {
		return nil, apierrors.NewBadRequest("the fake kcp applies by force only")
	}
	raw, err := yaml.YAMLToJSON(in.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	wanted, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if wanted.GetName() != "" && wanted.GetName() != in.Name {
		return nil, apierrors.NewBadRequest("the name of the object does not match the name on the URL")
	}
	wanted.SetName(in.Name)
	at := appliedKey{k, manager, in.Subresource}
	if old == nil {
		if in.Subresource != "" {
			return nil, apierrors.NewNotFound(in.groupResource(), in.Name)
		}
		if err := precondition(in, &unstructured.Unstructured{}, wanted.GetUID(), wanted.GetResourceVersion()); err != nil {
			return nil, err
		}
		s.applied[at] = runtime.DeepCopyJSON(wanted.Object)
		return s.add(in, k, wanted), nil
	}
	if err := precondition(in, old, wanted.GetUID(), wanted.GetResourceVersion()); err != nil {
		return nil, err
	}
	next := old.DeepCopy()
	prune(next.Object, s.applied[at], wanted.Object)
	merge(next.Object, runtime.DeepCopyJSON(wanted.Object))
	got, err := s.update(in, k, old, next)
	if _, ok := s.objects[k]; ok && err == nil {
		s.applied[at] = runtime.DeepCopyJSON(wanted.Object)
	}
	return got, err
}

// prune removes from an object what was applied before and is not wanted any more.
func prune(o, before, wanted map[string]any) {
	for name, value := range before {
		now, ok := wanted[name]
		if !ok {
			delete(o, name)
			continue
		}
		inner, _ := o[name].(map[string]any)
		old, _ := value.(map[string]any)
		next, _ := now.(map[string]any)
		if inner != nil && old != nil && next != nil {
			prune(inner, old, next)
		}
	}
}

// merge puts what is wanted into an object.
func merge(o, wanted map[string]any) {
	for name, value := range wanted {
		next, ok := value.(map[string]any)
		inner, _ := o[name].(map[string]any)
		if ok && inner != nil {
			merge(inner, next)
			continue
		}
		o[name] = value
	}
}
