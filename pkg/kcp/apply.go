package kcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Applier applies objects of any kind. What a kind is called in URLs it learns
// from the discovery of a logical cluster that serves it, once.
type Applier struct {
	clients *Clients

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]resource
}

// resource is how a kind is addressed.
type resource struct {
	name       string
	namespaced bool
}

// NewApplier returns an applier that knows no kind yet.
func NewApplier(c *Clients) *Applier {
	return &Applier{clients: c, kinds: map[schema.GroupVersionKind]resource{}}
}

// Apply applies an object in a logical cluster, server-side and by force, and
// returns what kcp then holds. An object of a namespaced kind that names no
// namespace goes to the default one. Of what kcp refuses, the error's message
// names the object and a short reason; kcp's own words are behind it.
func (a *Applier) Apply(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	got, err := a.apply(ctx, cluster, o)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return nil, errs.Wrap(errs.Conflict, err, refusal(o, status.Status()))
	}
	return got, err
}

func (a *Applier) apply(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := o.GroupVersionKind()
	known, ok := a.known(gvk)
	if !ok {
		var err error
		if known, err = a.discover(ctx, cluster, o); err != nil {
			return nil, err
		}
	}
	got, err := a.patch(ctx, cluster, o, known)
	if !ok || !apierrors.IsNotFound(err) {
		return got, err
	}
	// Another logical cluster may serve the kind under another name, or not yet.
	a.forget(gvk)
	here, missing := a.discover(ctx, cluster, o)
	if missing != nil {
		return nil, missing
	}
	if here == known {
		return nil, err
	}
	return a.patch(ctx, cluster, o, here)
}

func (a *Applier) patch(ctx context.Context, cluster string, o *unstructured.Unstructured, r resource) (*unstructured.Unstructured, error) {
	body, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	namespace := o.GetNamespace()
	if r.namespaced && namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	raw, err := answer(a.clients.REST(a.clients.ClusterURL(cluster), o.GroupVersionKind().GroupVersion()).Patch(types.ApplyPatchType).
		NamespaceIfScoped(namespace, r.namespaced).Resource(r.name).Name(o.GetName()).
		Param("fieldManager", FieldManager).Param("force", "true").
		Body(body).Do(ctx))
	if err != nil {
		return nil, err
	}
	got := &unstructured.Unstructured{}
	if err := got.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("parse kcp's answer: %w", err)
	}
	return got, nil
}

// answer is the body, or kcp's own words where it refuses: of a raw answer,
// client-go would keep nothing but the code.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

func (a *Applier) known(gvk schema.GroupVersionKind) (resource, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.kinds[gvk]
	return r, ok
}

func (a *Applier) forget(gvk schema.GroupVersionKind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kinds, gvk)
}

// discover asks the logical cluster how it serves the kind of an object.
func (a *Applier) discover(ctx context.Context, cluster string, o *unstructured.Unstructured) (resource, error) {
	gvk := o.GroupVersionKind()
	unserved := apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, o.GetName())
	unserved.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: causeUnserved}}
	raw, err := answer(a.clients.REST(a.clients.ClusterURL(cluster), gvk.GroupVersion()).Get().Do(ctx))
	if apierrors.IsNotFound(err) {
		return resource{}, unserved
	}
	if err != nil {
		return resource{}, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return resource{}, fmt.Errorf("parse the discovery of %s: %w", gvk.GroupVersion(), err)
	}
	for _, served := range list.APIResources {
		if served.Kind != gvk.Kind || strings.Contains(served.Name, "/") {
			continue
		}
		r := resource{name: served.Name, namespaced: served.Namespaced}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.kinds[gvk] = r
		return r, nil
	}
	return resource{}, unserved
}

// causeUnserved marks the error of a kind that a logical cluster does not serve.
const causeUnserved metav1.CauseType = "KindNotServed"

// refusal is what people are told: which object, and why in a few words. kcp's
// message is not among them, because it may tell of what they cannot see.
func refusal(o *unstructured.Unstructured, s metav1.Status) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	why := string(s.Reason)
	if s.Details != nil {
		var fields []string
		for _, c := range s.Details.Causes {
			if c.Type == causeUnserved {
				return fmt.Sprintf("%s %s: no API serves %s %s here", o.GetKind(), name, o.GetAPIVersion(), o.GetKind())
			}
			if c.Field != "" && len(fields) < 3 {
				fields = append(fields, c.Field)
			}
		}
		switch {
		case len(fields) > 0:
			why += ": " + strings.Join(fields, ", ")
		case s.Reason == metav1.StatusReasonNotFound && s.Details.Name != "" && s.Details.Name != o.GetName():
			why += ": " + s.Details.Kind + " " + s.Details.Name
		}
	}
	said := fmt.Sprintf("%s %s: kcp refuses it (%s)", o.GetKind(), name, why)
	if export, ok, _ := unstructured.NestedStringMap(o.Object, "spec", "reference", "export"); ok && s.Reason == metav1.StatusReasonForbidden {
		// Of an export that is not there kcp says the same as of one that may not be bound.
		said += fmt.Sprintf("; is there an APIExport %s in %s, and may the hub bind it?", export["name"], export["path"])
	}
	return said
}
