package membershipindex

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config are the caches that the reconciler reads and its writes to kcp.
type Config struct {
	User func(name string) (*v1alpha1.User, bool)
	// IndexedMemberships returns the Memberships of a User with their Organizations and Workspaces.
	IndexedMemberships func(user string) []tenancy.IndexedMembership
	Index              func(user string) (*v1alpha1.UserMembershipIndex, bool)

	Create func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error
	Update func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error
	Delete func(ctx context.Context, i *v1alpha1.UserMembershipIndex) error
}

// New returns the reconciler. The name of a key is that of a User.
func New(c Config) controller.Func {
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		have, exists := c.Index(key.Name)
		if exists && have.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationIgnore {
			return controller.Result{}, nil
		}
		if _, ok := c.User(key.Name); !ok {
			if exists {
				return controller.Result{}, c.Delete(ctx, have)
			}
			return controller.Result{}, nil
		}
		entries := tenancy.IndexEntries(c.IndexedMemberships(key.Name))
		if !exists {
			i := &v1alpha1.UserMembershipIndex{Spec: v1alpha1.UserMembershipIndexSpec{Entries: entries}}
			i.Name = key.Name
			return controller.Result{}, c.Create(ctx, i)
		}
		forced := have.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationReconcile
		if apiequality.Semantic.DeepEqual(have.Spec.Entries, entries) && !forced {
			return controller.Result{}, nil
		}
		want := have.DeepCopy()
		want.Spec.Entries = entries
		if forced {
			delete(want.Annotations, v1alpha1.OperationAnnotation)
		}
		return controller.Result{}, c.Update(ctx, want)
	}
}
