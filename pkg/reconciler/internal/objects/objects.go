package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Retryable turns an error that another writer causes into controller.ErrRetry.
func Retryable(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", controller.ErrRetry, err)
	}
	return err
}

// Cache reads the objects of one kind from memory. They are shared: read only.
type Cache[T kcp.Object] interface {
	Get(cluster, name string) (T, bool)
	InCluster(cluster string) []T
}

// Repository has the objects of one kind. For a kind with namespaces it writes those of one
// namespace, and the cache has them under tenancy.NamespacedName.
type Repository[T kcp.Object] struct {
	Cache[T]
	resource string
	client   func(cluster string) *kcp.Client[T]
}

// Of returns the Repository of a resource. cache is nil for a kind that the hub does not watch.
func Of[T kcp.Object](resource string, client func(cluster string) *kcp.Client[T], cache Cache[T]) Repository[T] {
	return Repository[T]{cache, resource, client}
}

// ByKey returns the object of a key from the cache.
func (r Repository[T]) ByKey(key controller.Key) (T, bool) { return r.Get(key.Cluster, key.Name) }

// Create creates the object. An object of the same name may exist already: it stays as it is.
func (r Repository[T]) Create(ctx context.Context, cluster string, o T) error {
	_, err := r.client(cluster).Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Try has kcp check the creation of the object and store nothing.
func (r Repository[T]) Try(ctx context.Context, cluster string, o T) error {
	_, err := r.client(cluster).Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager, DryRun: []string{metav1.DryRunAll}})
	return err
}

// Make creates the object and returns it. It fails with ErrRetry if one of the same name exists.
func (r Repository[T]) Make(ctx context.Context, cluster string, o T) (T, error) {
	made, err := r.client(cluster).Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	return made, Retryable(err)
}

// Put creates the object if it carries no resource version. Otherwise it replaces the
// object in kcp on condition that its resource version still matches.
func (r Repository[T]) Put(ctx context.Context, cluster string, o T) error {
	if o.GetResourceVersion() == "" {
		_, err := r.Make(ctx, cluster, o)
		return err
	}
	_, err := r.client(cluster).Update(ctx, o, metav1.UpdateOptions{FieldManager: kcp.FieldManager})
	return Retryable(err)
}

// Replace is Put for an object that tenants may have altered. It covers two cases more:
// the object exists without the label by which the cache finds it, and the object has
// another value in an immutable field, such as the roleRef of a binding. In the second
// case Replace deletes the object and creates it again.
func (r Repository[T]) Replace(ctx context.Context, cluster string, o T) error {
	err := r.Put(ctx, cluster, o)
	if errors.Is(err, controller.ErrRetry) && o.GetResourceVersion() == "" {
		unlabelled, getErr := r.Read(ctx, cluster, o.GetName())
		if getErr != nil {
			return getErr
		}
		o.SetResourceVersion(unlabelled.GetResourceVersion())
		err = r.Put(ctx, cluster, o)
	}
	if !apierrors.IsInvalid(err) || o.GetResourceVersion() == "" {
		return err
	}
	if err := r.deleteWithFinalizers(ctx, cluster, o); err != nil {
		return err
	}
	o.SetResourceVersion("")
	return r.Put(ctx, cluster, o)
}

// deleteWithFinalizers takes the finalizers off an object, because each of them would
// keep the name in use, and deletes the object. Another write in between fails it with
// ErrRetry.
func (r Repository[T]) deleteWithFinalizers(ctx context.Context, cluster string, o T) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "finalizers": nil,
	}})
	if err != nil {
		return err
	}
	free, err := r.client(cluster).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	if err != nil || !free.GetDeletionTimestamp().IsZero() {
		return Retryable(err)
	}
	version := free.GetResourceVersion()
	return Retryable(r.client(cluster).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}))
}

// Delete deletes the object with this UID, in whatever version. It succeeds if the
// object does not exist.
func (r Repository[T]) Delete(ctx context.Context, cluster string, o T) error {
	uid := o.GetUID()
	return r.deleteWith(ctx, cluster, o.GetName(), metav1.Preconditions{UID: &uid})
}

// DeleteUnchanged deletes the object on condition that it still has this UID and this
// resource version. It succeeds if the object does not exist.
func (r Repository[T]) DeleteUnchanged(ctx context.Context, cluster string, o T) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return r.deleteWith(ctx, cluster, o.GetName(), metav1.Preconditions{UID: &uid, ResourceVersion: &version})
}

func (r Repository[T]) deleteWith(ctx context.Context, cluster, name string, only metav1.Preconditions) error {
	err := r.client(cluster).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Retryable(err)
}

// Merge sends changes as a JSON merge patch, on condition that the object still has
// this UID and this resource version.
func (r Repository[T]) Merge(ctx context.Context, cluster string, o T, changes map[string]any, subresources ...string) error {
	patch, err := mergePatch(o, changes)
	if err != nil {
		return err
	}
	_, err = r.client(cluster).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager}, subresources...)
	return Retryable(err)
}

// mergePatch encodes changes as a JSON merge patch that applies to this UID and this
// resource version of the object only.
func mergePatch(o metav1.Object, changes map[string]any) ([]byte, error) {
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
func (r Repository[T]) Annotate(ctx context.Context, cluster string, o T, annotation, value string) error {
	set := map[string]any{annotation: value}
	if value == "" {
		set[annotation] = nil
	}
	return r.Merge(ctx, cluster, o, map[string]any{"metadata": map[string]any{"annotations": set}})
}

// Commit sends the patch of a pass of the controller loop.
func (r Repository[T]) Commit(ctx context.Context, key controller.Key, patch []byte, subresource string) error {
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	_, err := r.client(key.Cluster).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}

// Read gets an object from kcp itself. A missing object is ErrRetry: the cache has it
// and will follow.
func (r Repository[T]) Read(ctx context.Context, cluster, name string) (T, error) {
	o, err := r.client(cluster).Get(ctx, name, metav1.GetOptions{})
	return o, Retryable(err)
}

// Find gets an object from kcp itself. ok is false if it does not exist.
func (r Repository[T]) Find(ctx context.Context, cluster, name string) (o T, ok bool, err error) {
	found, err := r.client(cluster).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	return found, true, nil
}

// Exists asks kcp itself whether an object of that name exists.
func (r Repository[T]) Exists(ctx context.Context, cluster, name string) (bool, error) {
	_, ok, err := r.Find(ctx, cluster, name)
	return ok, err
}

// List reads all objects in a logical cluster from kcp itself.
func (r Repository[T]) List(ctx context.Context, cluster string) ([]T, error) {
	all := page[T]{}
	err := all.read(r.client(cluster).GetClient().Get().Resource(r.resource).Do(ctx).Raw())
	return all.Items, err
}

// pageSize is the number of objects that Each reads at a time.
const pageSize = 500

// page is a list, or a part of it.
type page[T kcp.Object] struct {
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

func (p *page[T]) read(raw []byte, err error) error {
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, p)
}

// Each calls f with all objects that match a label selector. They are read from kcp itself, page by
// page, so that not all of them are in memory at a time.
func (r Repository[T]) Each(ctx context.Context, cluster, selector string, f func(T) error) error {
	client := r.client(cluster)
	for next := ""; ; {
		request := client.GetClient().Get().Resource(r.resource).Param("labelSelector", selector).Param("limit", strconv.Itoa(pageSize))
		if next != "" {
			request.Param("continue", next)
		}
		list := page[T]{}
		if err := list.read(request.Do(ctx).Raw()); err != nil {
			return err
		}
		for _, o := range list.Items {
			if err := f(o); err != nil {
				return err
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}
