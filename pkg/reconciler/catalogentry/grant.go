package catalogentry

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// grant lets the audience of an entry bind its export, and nobody else. An entry that cannot be
// enabled has no audience.
type grant struct {
	locations
	// audience are those who may bind the exports of entries of an Organization.
	audience func(tenancy.Org) []rbacv1.Subject
	grants   Grants
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
			subjects = s.audience(*org)
		}
		audience, left := tenancy.FitAudience(subjects)
		if left > 0 {
			result.Message = fmt.Sprintf("%d of %d admins and bots may not bind the export: kcp stores no larger binding; remove admins and bots that are not needed", left, left+len(audience))
		}
		var held []tenancy.RBAC
		if held, err = s.grants.Find(ctx, at.at, grantName(e)); err == nil {
			err = s.grants.Keep(ctx, at.at, held, tenancy.CatalogGrantOf(e, audience))
		}
	} else {
		result, err = withheld, s.grants.remove(ctx, at.at, grantName(e))
	}
	if apierrors.IsForbidden(err) && !offered {
		// kcp does not serve the workspace of the export. Nobody can bind an export there.
		return result, nil
	}
	return result, err
}
