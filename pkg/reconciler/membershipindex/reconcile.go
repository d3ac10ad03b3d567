package membershipindex

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Views are the caches beside that of the indexes.
type Views interface {
	ByName(user string) (*v1alpha1.User, bool)
	// IndexedMemberships returns the Memberships of a User with their Organizations and Workspaces.
	IndexedMemberships(user string) []tenancy.IndexedMembership
}

// New returns the reconciler. The name of a key is that of a User.
func New(v Views, indexes objects.Repository[*v1alpha1.UserMembershipIndex]) controller.Func {
	return func(ctx context.Context, key controller.Key) (controller.Result, error) {
		have, exists := indexes.ByKey(key)
		if exists && have.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationIgnore {
			return controller.Result{}, nil
		}
		if _, ok := v.ByName(key.Name); !ok {
			if exists {
				return controller.Result{}, indexes.Delete(ctx, key.Cluster, have)
			}
			return controller.Result{}, nil
		}
		entries := tenancy.IndexEntries(v.IndexedMemberships(key.Name))
		if !exists {
			i := &v1alpha1.UserMembershipIndex{Spec: v1alpha1.UserMembershipIndexSpec{Entries: entries}}
			i.Name = key.Name
			return controller.Result{}, indexes.Put(ctx, key.Cluster, i)
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
		return controller.Result{}, indexes.Put(ctx, key.Cluster, want)
	}
}
