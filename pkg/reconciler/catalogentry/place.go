package catalogentry

import (
	"context"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// place sets the scope of an entry, compares its slug with those of the other entries that the
// same people see, and removes the grant of a deleted entry.
type place struct{ config Config }

func (*place) Condition() string { return v1alpha1.ConditionSlugUnique }

func (s *place) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	org, err := s.config.organization(e)
	if err != nil {
		return controller.Result{}, err
	}
	if !e.DeletionTimestamp.IsZero() {
		return s.remove(ctx, org, e)
	}
	if !controller.AddFinalizer(e) {
		return controller.Result{Message: "the entry is being prepared", Stop: true}, nil
	}
	uuid := ""
	e.Status.Scope = v1alpha1.CatalogGlobal
	if org != nil {
		uuid, e.Status.Scope = org.UUID(), tenancy.CatalogScopeOf(*org)
	}
	if other, in, ok := s.config.Cache.Clash(uuid, e); ok {
		whose := "a global entry"
		if in != "" {
			whose = "an entry of organization " + in
		}
		return controller.Result{Message: fmt.Sprintf("%s, %s, has the slug %s and comes first; delete one of the two", whose, other.Name, e.Spec.Slug)}, nil
	}
	return controller.Result{}, nil
}

// remove removes the grant of a deleted entry. In a Workspace that takes no writes the grant
// stays until the Workspace takes them again, or is removed: Config.sweep finds it there.
func (s *place) remove(ctx context.Context, org *tenancy.Org, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	result := controller.Result{Message: "the entry is being removed", Stop: true}
	if !controller.HasFinalizer(e) {
		return result, nil
	}
	if at := s.config.where(org, e); at.problem == "" {
		if err := s.config.Grants.Remove(ctx, at.at, grantName(e)); err != nil {
			return result, err
		}
	}
	controller.RemoveFinalizer(e)
	return result, nil
}

func clusterOf(e *v1alpha1.CatalogEntry) string { return string(logicalcluster.From(e)) }

func grantName(e *v1alpha1.CatalogEntry) string {
	return tenancy.CatalogGrantName(clusterOf(e), e.Name)
}
