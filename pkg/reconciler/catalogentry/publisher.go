package catalogentry

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// publisher asks whether the person who published an entry may bind its export. The grants of the
// hub do not count: the entry would vouch for itself otherwise, and two entries for each other. A
// SubjectAccessReview cannot leave them out, so the RBAC of the workspace of the export is read.
type publisher struct {
	locations
	people  People
	catalog Catalog
	rbac    objects.RBAC
}

func (*publisher) Condition() string { return v1alpha1.ConditionPublisherMayBind }

func (s *publisher) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	org, err := s.organization(e)
	if err != nil {
		return controller.Result{}, err
	}
	if org == nil {
		return controller.Result{Note: "the platform published it"}, nil
	}
	at := s.where(org, e)
	p := tenancy.Publisher{Org: *org, Entry: e, Workspace: at.workspace, Granted: meta.IsStatusConditionTrue(e.Status.Conditions, s.Condition())}
	by := e.Spec.PublishedBy
	if by != nil && by.User != nil {
		p.User, _ = s.people.ByName(by.User.Name)
		p.Rows = s.rows(*org, by.User.Name)
	}
	if problem := p.Problem(); problem != "" {
		return controller.Result{Message: problem, Reason: v1alpha1.ReasonRightEnded}, nil
	}
	switch {
	case by.Platform:
		return controller.Result{Note: "the platform published it"}, nil
	case at.workspace != "":
		return controller.Result{Note: "its publisher is an admin of the workspace that has the export"}, nil
	case s.global(e.Spec.APIExport):
		return controller.Result{Note: "a global entry lets everybody bind the export"}, nil
	case !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionExportFound):
		return s.last(e), nil
	}
	may, err := s.mayBind(ctx, at.at, p.User.Spec.RBACIdentity, e.Spec.APIExport.Name)
	switch {
	case err != nil:
		// What kcp does not answer changes nothing: the condition and the grant stay.
		return controller.Result{}, fmt.Errorf("%w: ask who may bind the export: %w", controller.ErrRetry, err)
	case !may:
		return controller.Result{Reason: v1alpha1.ReasonRightEnded, Message: "the provider does not let its publisher, " + by.User.Name +
			", bind the export; rights that come through a group of the identity provider and through this catalog do not count; ask the provider for the right"}, nil
	}
	return controller.Result{}, nil
}

// rows are those of the Memberships of a User in an Organization.
func (s *publisher) rows(org tenancy.Org, user string) (rows []v1alpha1.MembershipIndexEntry) {
	for _, m := range s.people.MembershipsOf(user) {
		if clusterOf(m) == org.ClusterID && m.DeletionTimestamp.IsZero() {
			row := v1alpha1.MembershipIndexEntry{OrgUUID: org.UUID(), WorkspaceUUID: tenancy.WorkspaceUUID(m), Role: m.Spec.Role}
			rows = append(rows, row)
		}
	}
	return rows
}

// global reports whether a Global entry offers an export to everybody.
func (s *publisher) global(ref v1alpha1.APIExportRef) bool {
	return slices.ContainsFunc(s.catalog.CatalogEntriesOf(""), func(e *v1alpha1.CatalogEntry) bool {
		return e.Spec.APIExport == ref && e.DeletionTimestamp.IsZero() &&
			meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionSlugUnique)
	})
}

// last returns what was found out at the last pass.
func (s *publisher) last(e *v1alpha1.CatalogEntry) controller.Result {
	c := meta.FindStatusCondition(e.Status.Conditions, s.Condition())
	switch {
	case c == nil:
		return controller.Result{Message: "the export has not been found yet"}
	case c.Status == "True":
		return controller.Result{Note: c.Message}
	}
	return controller.Result{Message: c.Message, Reason: c.Reason}
}

// mayBind reports whether a person may bind an export by what others than the hub grant.
func (s *publisher) mayBind(ctx context.Context, at, identity, export string) (bool, error) {
	if identity == "" {
		return false, nil
	}
	roles := map[string]bool{}
	others := v1alpha1.ManagedByLabel + "!=" + v1alpha1.ManagedByHub
	err := s.rbac.Bindings.Each(ctx, at, others, func(b *rbacv1.ClusterRoleBinding) error {
		if _, _, ours := tenancy.ParseCatalogGrantName(b.Name); !ours && tenancy.BindsPerson(b, identity) {
			roles[b.RoleRef.Name] = true
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for name := range roles {
		role, _, err := s.rbac.Roles.Find(ctx, at, name)
		if err != nil {
			return false, err
		}
		if tenancy.PermitsBind(name, role, export) {
			return true, nil
		}
	}
	return false, nil
}
