package kcpfake

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// key is where an object is kept. The versions of a group share their objects.
type key struct{ cluster, group, resource, namespace, name string }

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.cluster, o.cluster), cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

func keyIn(in Request) key {
	return key{in.Cluster, in.Group, in.Resource, in.Namespace, in.Name}
}

func (s *Server) keyOf(cluster string, u *unstructured.Unstructured) key {
	gvr := s.learn(u)
	return key{cluster, gvr.Group, gvr.Resource, u.GetNamespace(), u.GetName()}
}

// do carries out a request and returns the code and body of its answer.
func (s *Server) do(in Request) (int, any, error) {
	if in.Resource == "" {
		list, err := s.discovery(in)
		return http.StatusOK, list, err
	}
	if s.inactive(in) {
		return 0, nil, apierrors.NewForbidden(kcpcorev1alpha1.Resource("logicalclusters"), in.Cluster, errors.New("logical cluster is marked inactive"))
	}
	if in.Verb == verbList {
		list, err := s.list(in)
		return http.StatusOK, list, err
	}
	if in.Cluster == logicalcluster.Wildcard.String() {
		return 0, nil, apierrors.NewMethodNotSupported(in.groupResource(), in.Verb)
	}
	if s.isReview(in) {
		return s.answerReview(in)
	}
	code := http.StatusOK
	got, err := s.one(in, &code)
	if o, ok := got.(*unstructured.Unstructured); ok && err == nil {
		return code, s.converted(in, o), nil
	}
	return code, got, err
}

// one carries out a request for one object.
func (s *Server) one(in Request, code *int) (any, error) {
	k := keyIn(in)
	old, ok := s.objects[k]
	switch in.Verb {
	case verbCreate:
		*code = http.StatusCreated
		return s.create(in)
	case verbApply:
		if !ok && in.Subresource == "" {
			*code = http.StatusCreated
		}
		return s.apply(in, k, old)
	}
	if !ok {
		return nil, apierrors.NewNotFound(in.groupResource(), in.Name)
	}
	switch in.Verb {
	case verbGet:
		return old, nil
	case verbUpdate:
		next, err := decode(in.Body)
		if err != nil {
			return nil, err
		}
		return s.update(in, k, old, next)
	case verbPatch:
		next, err := patched(in, old)
		if err != nil {
			return nil, err
		}
		return s.update(in, k, old, next)
	case verbDelete:
		return s.delete(in, k, old)
	}
	return nil, apierrors.NewMethodNotSupported(in.groupResource(), in.Verb)
}

// converted is an object as the version of the API that a request names shows it.
func (s *Server) converted(in Request, o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetAPIVersion(in.groupVersion().String())
	return o
}

// inactive reports whether kcp refuses the request because its logical cluster is marked
// inactive.
func (s *Server) inactive(in Request) bool {
	const resource = "logicalclusters"
	if in.Group == kcpcorev1alpha1.SchemeGroupVersion.Group && in.Resource == resource {
		return false
	}
	lc, ok := s.objects[key{cluster: in.Cluster, group: kcpcorev1alpha1.SchemeGroupVersion.Group, resource: resource, name: kcpcorev1alpha1.LogicalClusterName}]
	return ok && kcpcorev1alpha1.IsLogicalClusterInactive(lc.GetAnnotations())
}

func decode(body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return u, nil
}

func (s *Server) create(in Request) (*unstructured.Unstructured, error) {
	u, err := decode(in.Body)
	if err != nil {
		return nil, err
	}
	if u.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + fmt.Sprintf("%05d", s.version+1))
	}
	if u.GetName() == "" {
		return nil, invalid(in, "metadata.name", "name or generateName is required")
	}
	in.Name = u.GetName()
	k := keyIn(in)
	if _, taken := s.objects[k]; taken {
		return nil, apierrors.NewAlreadyExists(in.groupResource(), in.Name)
	}
	return s.add(in, k, u), nil
}

// add keeps a new object without what a client cannot set.
func (s *Server) add(in Request, k key, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.kinds[in.groupVersion().WithResource(in.Resource)] = u.GetKind()
	for _, of := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", of)
	}
	delete(u.Object, "status")
	u.SetNamespace(k.namespace)
	return s.replace(k, u)
}

// replace keeps an object as it is given, as a new version.
func (s *Server) replace(k key, u *unstructured.Unstructured) *unstructured.Unstructured {
	old := s.objects[k]
	if u.GetUID() == "" {
		if old != nil {
			u.SetUID(old.GetUID())
		} else {
			u.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version+1)))
		}
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		if old != nil {
			u.SetCreationTimestamp(old.GetCreationTimestamp())
		} else {
			u.SetCreationTimestamp(metav1.NewTime(s.now()))
		}
	}
	if u.GetGeneration() == 0 {
		u.SetGeneration(max(1, generationOf(old)))
	}
	annotations := u.GetAnnotations()
	if annotations[logicalcluster.AnnotationKey] == "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[logicalcluster.AnnotationKey] = k.cluster
		u.SetAnnotations(annotations)
	}
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[k] = u
	s.record(event{key: k, old: old, new: u, version: s.version})
	return u
}

func generationOf(o *unstructured.Unstructured) int64 {
	if o == nil {
		return 0
	}
	return o.GetGeneration()
}

func (s *Server) remove(k key) *unstructured.Unstructured {
	last := s.objects[k].DeepCopy()
	s.version++
	last.SetResourceVersion(strconv.Itoa(s.version))
	delete(s.objects, k)
	for of := range s.applied {
		if of.key == k {
			delete(s.applied, of)
		}
	}
	s.record(event{key: k, old: last, version: s.version})
	return last
}

// update replaces an object by what a client wants it to be.
func (s *Server) update(in Request, k key, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := precondition(in, old, next.GetUID(), next.GetResourceVersion()); err != nil {
		return nil, err
	}
	if next.GetName() != old.GetName() {
		return nil, apierrors.NewBadRequest("the name of the object does not match the name on the URL")
	}
	if in.Subresource == "status" {
		status := next.Object["status"]
		next = old.DeepCopy()
		if next.Object["status"] = status; status == nil {
			delete(next.Object, "status")
		}
	} else {
		next = next.DeepCopy()
		if next.Object["status"] = old.Object["status"]; old.Object["status"] == nil {
			delete(next.Object, "status")
		}
	}
	next.SetUID(old.GetUID())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetGeneration(old.GetGeneration())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetAPIVersion(old.GetAPIVersion())
	next.SetNamespace(old.GetNamespace())
	if old.GetDeletionTimestamp() != nil {
		for _, f := range next.GetFinalizers() {
			if !slices.Contains(old.GetFinalizers(), f) {
				return nil, invalid(in, "metadata.finalizers", "no new finalizers can be added if the object is being deleted")
			}
		}
	}
	if apiequality.Semantic.DeepEqual(old.Object, next.Object) {
		return old, nil
	}
	if !apiequality.Semantic.DeepEqual(intent(old), intent(next)) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		s.objects[k] = next
		return s.remove(k), nil
	}
	return s.replace(k, next), nil
}

// intent is what a generation counts the changes of.
func intent(o *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(o.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

func (s *Server) delete(in Request, k key, old *unstructured.Unstructured) (any, error) {
	var options metav1.DeleteOptions
	if len(in.Body) > 0 {
		if err := json.Unmarshal(in.Body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil {
		var uid types.UID
		var version string
		if p.UID != nil {
			uid = *p.UID
		}
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if err := precondition(in, old, uid, version); err != nil {
			return nil, err
		}
	}
	if len(old.GetFinalizers()) > 0 {
		if old.GetDeletionTimestamp() != nil {
			return old, nil
		}
		next := old.DeepCopy()
		at := metav1.NewTime(s.now())
		next.SetDeletionTimestamp(&at)
		next.SetGeneration(old.GetGeneration() + 1)
		return s.replace(k, next), nil
	}
	s.remove(k)
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Group: in.Group, Kind: in.Resource, Name: in.Name, UID: old.GetUID()},
	}, nil
}

// precondition compares the UID and resource version that a client names, if it does.
func precondition(in Request, o *unstructured.Unstructured, uid types.UID, version string) error {
	switch {
	case uid != "" && uid != o.GetUID():
		return apierrors.NewConflict(in.groupResource(), in.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", uid, o.GetUID()))
	case version != "" && version != o.GetResourceVersion():
		return apierrors.NewConflict(in.groupResource(), in.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

func invalid(in Request, path, message string) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: in.Group, Kind: in.Resource}, in.Name,
		field.ErrorList{field.Invalid(field.NewPath(path), nil, message)})
}
