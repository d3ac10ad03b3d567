package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Retryable turns an error that another writer causes into controller.ErrRetry.
func Retryable(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", controller.ErrRetry, err)
	}
	return err
}

// Create creates the object. An object of the same name may exist already: it stays
// as it is.
func Create[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	_, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Put creates the object if it carries no resource version. Otherwise it replaces the
// object in kcp on condition that its resource version still matches.
func Put[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	var err error
	if o.GetResourceVersion() == "" {
		_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	} else {
		_, err = client.Update(ctx, o, metav1.UpdateOptions{FieldManager: kcp.FieldManager})
	}
	return Retryable(err)
}

// Replace is Put for an object that tenants may have altered. It covers two cases more:
// the object exists without the label by which the cache finds it, and the object has
// another value in an immutable field, such as the roleRef of a binding. In the second
// case Replace deletes the object and creates it again.
func Replace[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	err := Put(ctx, client, o)
	if errors.Is(err, controller.ErrRetry) && o.GetResourceVersion() == "" {
		unlabelled, getErr := client.Get(ctx, o.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return Retryable(getErr)
		}
		o.SetResourceVersion(unlabelled.GetResourceVersion())
		err = Put(ctx, client, o)
	}
	if !apierrors.IsInvalid(err) || o.GetResourceVersion() == "" {
		return err
	}
	if err := deleteWithFinalizers(ctx, client, o); err != nil {
		return err
	}
	o.SetResourceVersion("")
	return Put(ctx, client, o)
}

// deleteWithFinalizers takes the finalizers off an object, because each of them would
// keep the name in use, and deletes the object. Another write in between fails it with
// ErrRetry.
func deleteWithFinalizers[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "finalizers": nil,
	}})
	if err != nil {
		return err
	}
	free, err := client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	if err != nil || !free.GetDeletionTimestamp().IsZero() {
		return Retryable(err)
	}
	version := free.GetResourceVersion()
	return Retryable(client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}))
}

// Delete deletes the object with this UID, in whatever version. It succeeds if the
// object does not exist.
func Delete[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	uid := o.GetUID()
	return deleteWith(ctx, client, o.GetName(), metav1.Preconditions{UID: &uid})
}

// DeleteUnchanged deletes the object on condition that it still has this UID and this
// resource version. It succeeds if the object does not exist.
func DeleteUnchanged[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return deleteWith(ctx, client, o.GetName(), metav1.Preconditions{UID: &uid, ResourceVersion: &version})
}

func deleteWith[T kcp.Object](ctx context.Context, client *kcp.Client[T], name string, only metav1.Preconditions) error {
	err := client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Retryable(err)
}

// Merge sends changes as a JSON merge patch, on condition that the object still has
// this UID and this resource version.
func Merge[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T, changes map[string]any, subresources ...string) error {
	patch, err := MergePatch(o, changes)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, subresources...)
	return Retryable(err)
}

// MergePatch encodes changes as a JSON merge patch that applies to this UID and this
// resource version of the object only.
func MergePatch(o metav1.Object, changes map[string]any) ([]byte, error) {
	metadata := map[string]any{}
	if given, ok := changes["metadata"].(map[string]any); ok {
		for field, value := range given {
			metadata[field] = value
		}
	}
	metadata["uid"], metadata["resourceVersion"] = o.GetUID(), o.GetResourceVersion()
	all := map[string]any{"metadata": metadata}
	for field, value := range changes {
		if field != "metadata" {
			all[field] = value
		}
	}
	patch, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the patch of %s: %w", o.GetName(), err)
	}
	return patch, nil
}

// Annotate sets an annotation, on condition that the object is unchanged. An empty
// value removes the annotation.
func Annotate[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T, annotation, value string) error {
	set := map[string]any{annotation: value}
	if value == "" {
		set[annotation] = nil
	}
	return Merge(ctx, client, o, map[string]any{"metadata": map[string]any{"annotations": set}})
}

// Commit returns the func by which the controller loop sends the patch of a pass.
// clients returns the client of a logical cluster.
func Commit[T kcp.Object](clients func(cluster string) *kcp.Client[T]) func(ctx context.Context, key controller.Key, patch []byte, subresource string) error {
	return func(ctx context.Context, key controller.Key, patch []byte, subresource string) error {
		var subresources []string
		if subresource != "" {
			subresources = append(subresources, subresource)
		}
		_, err := clients(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		return err
	}
}

// Read gets an object from kcp itself. A missing object is ErrRetry: the cache has it
// and will follow.
func Read[T kcp.Object](ctx context.Context, client *kcp.Client[T], name string) (T, error) {
	o, err := client.Get(ctx, name, metav1.GetOptions{})
	return o, Retryable(err)
}

// Find gets an object from kcp itself. ok is false if it does not exist.
func Find[T kcp.Object](ctx context.Context, client *kcp.Client[T], name string) (o T, ok bool, err error) {
	o, err = client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return o, false, nil
	}
	return o, err == nil, err
}

// Exists asks kcp itself whether an object of that name exists.
func Exists[T kcp.Object](ctx context.Context, client *kcp.Client[T], name string) (bool, error) {
	_, ok, err := Find(ctx, client, name)
	return ok, err
}

// List reads all objects of the client's kind from kcp itself into list and returns
// list.
func List[T kcp.Object, L runtime.Object](ctx context.Context, client *kcp.Client[T], resource string, list L) (L, error) {
	return list, client.GetClient().Get().Resource(resource).Do(ctx).Into(list)
}

// pageSize is the number of objects that Each reads at a time.
const pageSize = 500

// Each calls f with all objects of the client's kind that match a label selector, page by page.
// They are read from kcp itself.
func Each[T kcp.Object, L interface {
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, client *kcp.Client[T], resource, selector string, page func() L, f func(L) error) error {
	for next := ""; ; {
		request := client.GetClient().Get().Resource(resource).Param("labelSelector", selector).Param("limit", strconv.Itoa(pageSize))
		if next != "" {
			request.Param("continue", next)
		}
		list := page()
		if err := request.Do(ctx).Into(list); err != nil {
			return err
		}
		if err := f(list); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// Bindings returns the wanted APIBindings of logical clusters with the means to keep
// them: cached returns those of a cluster from the cache.
func Bindings(clients *kcp.Clients, wanted []*kcpapisv1alpha2.APIBinding, cached func(cluster string) []*kcpapisv1alpha2.APIBinding) tenancy.Bindings {
	return tenancy.Bindings{
		Wanted: wanted,
		Held:   cached,
		List: func(ctx context.Context, cluster string) ([]kcpapisv1alpha2.APIBinding, error) {
			list, err := List(ctx, clients.APIBindings(cluster), "apibindings", &kcpapisv1alpha2.APIBindingList{})
			return list.Items, err
		},
		Write: func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error {
			return Put(ctx, clients.APIBindings(cluster), b)
		},
	}
}

// RetryConflicts returns f with its errors made Retryable.
func RetryConflicts[T any](f func(context.Context, T) error) func(context.Context, T) error {
	return func(ctx context.Context, of T) error { return Retryable(f(ctx, of)) }
}
