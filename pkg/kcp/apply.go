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

// FieldManager is the hub's field manager in server-side applies.
const FieldManager = "kedge-hub"

// resource is how a kind is addressed in URLs.
type resource struct {
	name       string
	namespaced bool
}

// kinds are the resources of kinds that were discovered. Most logical clusters serve a
// kind under the same resource, so each kind is discovered once and not once per
// cluster.
type kinds struct {
	mu    sync.Mutex
	known map[schema.GroupVersionKind]resource
}

func (k *kinds) get(gvk schema.GroupVersionKind) (resource, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.known[gvk]
	return r, ok
}

func (k *kinds) set(gvk schema.GroupVersionKind, r resource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[gvk] = r
}

func (k *kinds) forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, gvk)
}

// Apply applies an object of any kind in a logical cluster, server-side and by force,
// and returns what kcp then holds. An object of a namespaced kind without a namespace
// goes to the namespace "default".
func (c *Clients) Apply(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := o.GroupVersionKind()
	known, ok, err := c.find(ctx, cluster, o)
	if err != nil {
		return nil, err
	}
	got, err := c.patch(ctx, cluster, o, known)
	if !ok || !apierrors.IsNotFound(err) {
		return got, err
	}
	// This logical cluster may serve the kind as another resource, or not at all.
	c.kinds.forget(gvk)
	served, failure := c.discover(ctx, cluster, o)
	if failure != nil {
		return nil, failure
	}
	if served == known {
		return nil, err
	}
	return c.patch(ctx, cluster, o, served)
}

// Held returns what kcp holds of an object that is as for Apply.
func (c *Clients) Held(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, _, err := c.find(ctx, cluster, o)
	if err != nil {
		return nil, err
	}
	return send(ctx, c.REST(c.ClusterURL(cluster), o.GroupVersionKind().GroupVersion()).Get(), o, r)
}

// find returns the resource of an object, and whether it was known.
func (c *Clients) find(ctx context.Context, cluster string, o *unstructured.Unstructured) (r resource, known bool, err error) {
	if r, known = c.kinds.get(o.GroupVersionKind()); !known {
		r, err = c.discover(ctx, cluster, o)
	}
	return r, known, err
}

func (c *Clients) patch(ctx context.Context, cluster string, o *unstructured.Unstructured, r resource) (*unstructured.Unstructured, error) {
	body, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return send(ctx, c.REST(c.ClusterURL(cluster), o.GroupVersionKind().GroupVersion()).Patch(types.ApplyPatchType).
		Param("fieldManager", FieldManager).Param("force", "true").Body(body), o, r)
}

// send sends a request about an object and returns the object in the answer.
func send(ctx context.Context, request *rest.Request, o *unstructured.Unstructured, r resource) (*unstructured.Unstructured, error) {
	namespace := o.GetNamespace()
	if r.namespaced && namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	raw, err := answer(request.NamespaceIfScoped(namespace, r.namespaced).Resource(r.name).Name(o.GetName()).Do(ctx))
	if err != nil {
		return nil, err
	}
	got := &unstructured.Unstructured{}
	if err := got.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("parse kcp's answer: %w", err)
	}
	return got, nil
}

// answer returns the body, or kcp's Status as an error. Result.Raw alone would keep only
// the code of a Status.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// discover asks a logical cluster how it serves the kind of an object.
func (c *Clients) discover(ctx context.Context, cluster string, o *unstructured.Unstructured) (resource, error) {
	gvk := o.GroupVersionKind()
	unserved := apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, o.GetName())
	unserved.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: causeUnserved}}
	raw, err := answer(c.REST(c.ClusterURL(cluster), gvk.GroupVersion()).Get().Do(ctx))
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
		if served.Kind == gvk.Kind && !strings.Contains(served.Name, "/") {
			r := resource{name: served.Name, namespaced: served.Namespaced}
			c.kinds.set(gvk, r)
			return r, nil
		}
	}
	return resource{}, unserved
}

// causeUnserved marks the error for a kind that a logical cluster does not serve.
const causeUnserved metav1.CauseType = "KindNotServed"

// ExplainRefusal turns kcp's refusal to apply an object into an error that users may
// see: it names the object and a short reason. kcp's own message stays in the chain for
// logs, because it may tell of objects that users cannot see. Other errors are returned
// as they are.
func ExplainRefusal(o *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return errs.Wrap(errs.Conflict, err, refusal(o, status.Status()))
}

func refusal(o *unstructured.Unstructured, s metav1.Status) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	reason := string(s.Reason)
	if s.Details != nil {
		var fields []string
		for _, cause := range s.Details.Causes {
			if cause.Type == causeUnserved {
				return fmt.Sprintf("%s %s: no API serves %s %s here", o.GetKind(), name, o.GetAPIVersion(), o.GetKind())
			}
			if cause.Field != "" && len(fields) < 3 {
				fields = append(fields, cause.Field)
			}
		}
		switch {
		case len(fields) > 0:
			reason += ": " + strings.Join(fields, ", ")
		case s.Reason == metav1.StatusReasonNotFound && s.Details.Name != "" && s.Details.Name != o.GetName():
			reason += ": " + s.Details.Kind + " " + s.Details.Name
		}
	}
	message := fmt.Sprintf("%s %s: kcp refuses it (%s)", o.GetKind(), name, reason)
	if export, ok, _ := unstructured.NestedStringMap(o.Object, "spec", "reference", "export"); ok && s.Reason == metav1.StatusReasonForbidden {
		// kcp answers the same for an export that does not exist and for one that may
		// not be bound.
		message += fmt.Sprintf("; is there an APIExport %s in %s, and may the hub bind it?", export["name"], export["path"])
	}
	return message
}
