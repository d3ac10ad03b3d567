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
type grant struct{ config Config }

func (*grant) Condition() string { return v1alpha1.ConditionGrantReady }

func (s *grant) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	org, err := s.config.organization(e)
	if err != nil {
		return controller.Result{}, err
	}
	at := s.config.where(org, e)
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
		audience, left := tenancy.FitAudience(s.audience(org))
		if left > 0 {
			result.Message = fmt.Sprintf("%d of %d admins and bots may not bind the export: kcp stores no larger binding; remove admins and bots that are not needed", left, left+len(audience))
		}
		err = s.apply(ctx, at.at, tenancy.CatalogGrantOf(e, audience))
	} else {
		result, err = withheld, s.config.Grants.Remove(ctx, at.at, grantName(e))
	}
	if apierrors.IsForbidden(err) && !offered {
		// kcp does not serve the workspace of the export. Nobody can bind an export there.
		return result, nil
	}
	return result, err
}

func (s *grant) audience(org *tenancy.Org) []rbacv1.Subject {
	if org == nil {
		return tenancy.GlobalAudience()
	}
	return s.config.Cache.Audience(*org)
}

// apply writes what differs from the grant. Rights that ended are removed first.
func (s *grant) apply(ctx context.Context, at string, want tenancy.CatalogGrant) error {
	grants := s.config.Grants
	role, binding, err := grants.Find(ctx, at, want.Role.Name)
	if err != nil {
		return err
	}
	if want.Binding == nil {
		if role == nil && binding == nil {
			return nil
		}
		return grants.Remove(ctx, at, want.Role.Name)
	}
	if role == nil || !tenancy.SameRole(role, want.Role) || controller.Forced(ctx) {
		if role != nil {
			want.Role.ResourceVersion = role.ResourceVersion
		}
		if err := grants.WriteRole(ctx, at, want.Role); err != nil {
			return err
		}
	}
	if binding != nil && tenancy.SameBinding(binding, want.Binding) && !controller.Forced(ctx) {
		return nil
	}
	if binding != nil {
		want.Binding.ResourceVersion = binding.ResourceVersion
	}
	return grants.WriteBinding(ctx, at, want.Binding)
}
