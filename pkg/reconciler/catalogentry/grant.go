package catalogentry

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// grant lets the audience of an entry bind its export, and nobody else. An entry that cannot be
// enabled has no audience.
type grant struct {
	grants
	people People
	bots   objects.Bots
}

func (*grant) Condition() string { return v1alpha1.ConditionGrantReady }

func (s *grant) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	org, err := s.organization(e)
	if err != nil {
		return controller.Result{}, err
	}
	at := s.where(org, e)
	withheld := controller.Result{Message: "nobody may bind the export while the entry cannot be enabled"}
	if at.problem != "" {
		return withheld, nil
	}
	offered := true
	for _, needed := range []string{v1alpha1.ConditionSlugUnique, v1alpha1.ConditionExportFound, v1alpha1.ConditionPublisherMayBind} {
		offered = offered && meta.IsStatusConditionTrue(e.Status.Conditions, needed)
	}
	result := controller.Result{}
	if offered {
		subjects := tenancy.GlobalAudience()
		if org != nil {
			workspaces, members := s.places.Workspaces(org.UUID()), s.people.MembershipsIn(org.ClusterID)
			subjects = tenancy.OrgAudience(*org, workspaces, members, s.bots.InCluster(org.ClusterID), s.people.ByName)
		}
		audience, left := tenancy.FitAudience(subjects)
		if left > 0 {
			result.Message = fmt.Sprintf("%d of %d admins and bots may not bind the export: kcp stores no larger binding; remove admins and bots that are not needed", left, left+len(audience))
		}
		var held []tenancy.RBAC
		if held, err = s.find(ctx, at, grantName(e)); err == nil {
			err = s.rbac.Keep(ctx, at.at, held, tenancy.CatalogGrantOf(e, audience))
		}
	} else {
		result, err = withheld, s.remove(ctx, at.at, grantName(e))
	}
	if apierrors.IsForbidden(err) && !offered {
		// kcp does not serve the workspace of the export. Nobody can bind an export there.
		return result, nil
	}
	return result, err
}

// grants reads and writes the grants of entries.
type grants struct {
	locations
	rbac objects.RBAC
}

// find returns the role and the binding of a name, from the cache where that has them.
func (g grants) find(ctx context.Context, at location, name string) ([]tenancy.RBAC, error) {
	if at.workspace == "" || controller.Forced(ctx) {
		return g.read(ctx, at.at, name)
	}
	role, hasRole := g.rbac.Roles.Get(at.at, name)
	binding, hasBinding := g.rbac.Bindings.Get(at.at, name)
	return grantOf(role, hasRole, binding, hasBinding), nil
}

// read reads the role and the binding of a name from kcp. There are none if the workspace is gone.
// at is its path or its logical cluster.
func (g grants) read(ctx context.Context, at, name string) ([]tenancy.RBAC, error) {
	role, err := g.rbac.Roles.Read(ctx, at, name)
	hasRole := err == nil
	if err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
		if gone, err := g.gone(ctx, at, err); gone || err != nil {
			return nil, err
		}
	}
	binding, hasBinding, err := g.rbac.Bindings.Find(ctx, at, name)
	return grantOf(role, hasRole, binding, hasBinding), err
}

func (g grants) remove(ctx context.Context, at, name string) error {
	held, err := g.read(ctx, at, name)
	if err != nil {
		return err
	}
	return g.rbac.Keep(ctx, at, held, nil)
}

// grantOf returns the objects of a grant that exist.
func grantOf(role *rbacv1.ClusterRole, hasRole bool, binding *rbacv1.ClusterRoleBinding, hasBinding bool) (held []tenancy.RBAC) {
	if hasRole {
		held = append(held, role)
	}
	if hasBinding {
		held = append(held, binding)
	}
	return held
}
