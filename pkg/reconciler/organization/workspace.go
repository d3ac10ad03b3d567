package organization

import (
	"context"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// workspace creates the Organization's kcp Workspace and waits until kcp has bound the
// APIs in it. Before it creates the Workspace it reads the Organization from kcp: the
// Workspace of an Organization that was purged meanwhile would stay for ever. A spare of the
// Organization's name is there already, with its APIs.
type workspace struct {
	tree       tenancy.Tree
	workspaces workspaces
	cluster    clusterFunc
	orgs       organizations
	user       func(name string) (*v1alpha1.User, bool)
}

func (*workspace) Condition() string { return v1alpha1.ConditionWorkspaceBound }

func (s *workspace) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Result, error) {
	org.Status.WorkspacePath = s.tree.Org(org.Name)
	own, ok := s.workspaces.of(org.Name)
	if ok && !own.DeletionTimestamp.IsZero() {
		return controller.Result{Message: leaving(own), Stop: true}, nil
	}
	if !ok {
		if !org.DeletionTimestamp.IsZero() {
			return controller.Result{Message: "the organization is being deleted", Stop: true}, nil
		}
		if _, err := s.orgs.current(ctx, org); err != nil {
			return controller.Result{}, err
		}
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name = org.Name
		ws.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: tenancy.TypeOrganization, Path: s.tree.Root()}
		if err := s.workspaces.Create(ctx, s.workspaces.cluster, ws); err != nil {
			return controller.Result{}, err
		}
	}
	if ok && tenancy.IsSpare(own) {
		if _, err := s.orgs.current(ctx, org); err != nil {
			return controller.Result{}, err
		}
		if err := s.workspaces.Take(ctx, s.workspaces.cluster, own, s.rightful(org, own), map[string]any{}); err != nil {
			return controller.Result{}, err
		}
	}
	if _, ok := s.cluster(org.Name); !ok {
		return controller.Result{Message: "kcp is creating the organization's workspace", Stop: true}, nil
	}
	return controller.Result{}, nil
}

// leaving says why an Organization waits for kcp to remove its workspace. A spare that is thrown away has no content.
func leaving(own *kcptenancyv1alpha1.Workspace) string {
	if tenancy.IsSpare(own) {
		return "the workspace that was ready for the organization is being removed; another one is created after that"
	}
	return "somebody deleted the organization's workspace by hand; its content is lost, " +
		"and it is created again after kcp has removed it"
}

// rightful reports whether a spare is reserved for the Organization's creator, or for nobody.
func (s *workspace) rightful(org *v1alpha1.Organization, spare *kcptenancyv1alpha1.Workspace) bool {
	reserved := tenancy.SpareOf(spare).Reserved
	if reserved == nil {
		return true
	}
	u, ok := s.user(org.Annotations[v1alpha1.CreatedByAnnotation])
	return ok && reserved.IsFor(u)
}
