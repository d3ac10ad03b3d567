package catalogentry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// scope sets the scope of an entry, compares its slug with those of the other entries that the
// same people see, and removes the grant of a deleted entry.
type scope struct {
	grants
	catalog Catalog
	clock   clock.PassiveClock
}

func (*scope) Condition() string { return v1alpha1.ConditionSlugUnique }

func (s *scope) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	org, err := s.organization(e)
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
	if other, in, ok := s.catalog.CatalogClash(uuid, e); ok {
		if in == "" && org != nil {
			return controller.Result{Message: fmt.Sprintf("a global entry, %s, has the slug %s; publish this API again under another slug, and delete this entry", other.Name, e.Spec.Slug)}, nil
		}
		holder := "a global entry"
		if in != "" {
			holder = "an entry of organization " + in
		}
		return controller.Result{Message: fmt.Sprintf("%s, %s, has the slug %s and comes first; delete one of the two", holder, other.Name, e.Spec.Slug)}, nil
	}
	return controller.Result{}, nil
}

// inactiveWait is the time that a deleted entry waits for a workspace that kcp does not serve.
const inactiveWait = time.Minute

// inactiveDelay is the time after which that workspace is tried again.
const inactiveDelay = 10 * time.Second

// remove removes the grant of a deleted entry. In a Workspace that takes no writes the grant
// stays until the Workspace takes them again, or is removed: leftovers.sweep finds it there. In the
// workspace of a provider that is deactivated it stays after inactiveWait, because nobody knows
// how long it is deactivated, and the Organization may wait for the removal of the entry:
// leftovers.tidy finds it there.
func (s *scope) remove(ctx context.Context, org *tenancy.Org, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	result := controller.Result{Message: "the entry is being removed", Stop: true}
	if !controller.HasFinalizer(e) {
		return result, nil
	}
	if at := s.where(org, e); at.problem == "" {
		err := s.grants.remove(ctx, at.at, grantName(e))
		switch waits := inactiveWait - s.clock.Since(e.DeletionTimestamp.Time); {
		case apierrors.IsForbidden(err) && waits > 0:
			result.Message = about(e, string(workspaceInactive))
			result.RequeueAfter = min(waits, inactiveDelay)
			return result, nil
		case err != nil && !apierrors.IsForbidden(err):
			return result, err
		}
	}
	controller.RemoveFinalizer(e)
	return result, nil
}

func grantName(e *v1alpha1.CatalogEntry) string {
	return tenancy.CatalogGrantName(clusterOf(e), e.Name)
}
