package server

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// writes are the reconcilers' hands.
type writes struct {
	clients  *kcp.Clients
	clusters bootstrap.Clusters
	tree     tenancy.Tree
}

// put makes an object, or replaces the one whose resource version it carries.
// That somebody was faster is a reason to look again, not a failure.
func put[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	var err error
	if o.GetResourceVersion() == "" {
		_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	} else {
		_, err = client.Update(ctx, o, metav1.UpdateOptions{FieldManager: kcp.FieldManager})
	}
	return again(err)
}

// create makes an object that may be there already.
func create[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	_, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func remove[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	uid := o.GetUID()
	err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return again(err)
}

func again(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", controller.ErrRetry, err)
	}
	return err
}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func (w *writes) createMembership(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
	return create(ctx, w.clients.Memberships(cluster), m)
}

// replace is put for an object whose label may have been taken off, so that it is
// there but not in sight, and which may have been made by somebody else in a way
// that cannot be changed, as the role of a binding.
func replace[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T) error {
	err := put(ctx, client, o)
	if errors.Is(err, controller.ErrRetry) && o.GetResourceVersion() == "" {
		hidden, getErr := client.Get(ctx, o.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return again(getErr)
		}
		o.SetResourceVersion(hidden.GetResourceVersion())
		err = put(ctx, client, o)
	}
	if !apierrors.IsInvalid(err) || o.GetResourceVersion() == "" {
		return err
	}
	// A finalizer would keep it, and its name with it. Whoever writes to it meanwhile may
	// put one on: then it is looked at again.
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"finalizers":null}}`, o.GetResourceVersion())
	freed, err := client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kcp.FieldManager})
	if err != nil {
		return again(err)
	}
	if freed.GetDeletionTimestamp().IsZero() {
		version := freed.GetResourceVersion()
		err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		if err != nil {
			return again(err)
		}
	}
	o.SetResourceVersion("")
	return put(ctx, client, o)
}

func (w *writes) listMemberships(ctx context.Context, cluster string) ([]v1alpha1.Membership, error) {
	var list v1alpha1.MembershipList
	err := w.clients.Memberships(cluster).GetClient().Get().Resource("memberships").Do(ctx).Into(&list)
	return list.Items, err
}

func (w *writes) removeMembership(ctx context.Context, cluster string, m *v1alpha1.Membership) error {
	err := w.clients.Memberships(cluster).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return again(err)
}
