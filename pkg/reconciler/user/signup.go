package user

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// errUnasked is the error of a pass that finds in kcp that the object need not be created
// any more.
var errUnasked = fmt.Errorf("%w: it is not needed any more", controller.ErrRetry)

// personalOrg creates the User's personal Organization, one time: after the User deleted
// it, it is not created again.
type personalOrg struct {
	enabled bool
	// billing is that of a new Organization.
	billing *v1alpha1.Billing
	org     func(uuid string) (tenancy.Org, bool)
	current current
	create  func(ctx context.Context, o *v1alpha1.Organization) error
	// spareIn returns the UUID of the Workspace in a spare Organization; it is empty if there is none.
	spareIn func(org string) string
}

func (*personalOrg) Condition() string { return v1alpha1.ConditionPersonalOrg }

func (s *personalOrg) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	o := tenancy.NewPersonalOrg(u)
	if !s.enabled || u.Status.PersonalOrg == o.Name {
		return controller.Result{}, nil
	}
	held, ok := s.org(o.Name)
	if ok && (!held.Spec.Personal || held.CreatedBy() != u.Name) {
		return controller.Result{Message: "the organization of the annotation " + v1alpha1.PersonalOrgAnnotation + " is not the person's own"}, nil
	}
	if !ok && u.Status.PersonalOrg == "" {
		switch read, err := s.current(ctx, u); {
		case err != nil:
			return controller.Result{}, err
		case read.Status.PersonalOrg != "":
			return controller.Result{}, errUnasked
		}
		if workspace := s.spareIn(o.Name); workspace != "" {
			o.Annotations[v1alpha1.DefaultWorkspaceAnnotation] = workspace
		}
		o.Spec.Billing = s.billing.DeepCopy()
		if err := s.create(ctx, o); err != nil {
			return controller.Result{}, err
		}
	}
	u.Status.PersonalOrg = o.Name
	return controller.Result{}, nil
}

// defaultWorkspace creates a Workspace in the personal Organization, one time, after the
// User is approved. A User who deleted that Organization before does not get one.
type defaultWorkspace struct {
	enabled bool
	views   Views
	// exists asks kcp itself whether an Organization exists.
	exists     func(ctx context.Context, uuid string) (bool, error)
	current    current
	workspaces objects.Workspaces
}

func (*defaultWorkspace) Condition() string { return v1alpha1.ConditionDefaultWorkspace }

func (s *defaultWorkspace) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	if !s.enabled {
		return controller.Result{}, nil
	}
	if u.Status.DefaultWorkspace != "" {
		s.restore(u)
		return controller.Result{}, nil
	}
	if !tenancy.Active(u) {
		return controller.Result{Message: "the registration waits for approval"}, nil
	}
	org, ok := s.views.Org(u.Status.PersonalOrg)
	if !ok && u.Status.PersonalOrg != "" && meta.FindStatusCondition(u.Status.Conditions, s.Condition()) != nil {
		// The cache may not have an Organization that was created a moment ago. In the first
		// pass it never has.
		if there, err := s.exists(ctx, u.Status.PersonalOrg); err != nil || !there {
			return controller.Result{}, err
		}
	}
	switch {
	case ok && org.Deleted():
		return controller.Result{}, nil
	case !ok || org.Status.Phase != v1alpha1.PhaseReady || org.ClusterID == "":
		return controller.Result{Message: "the person's own organization is being created"}, nil
	}
	want := tenancy.NewDefaultWorkspace(org)
	ws, ok := s.views.Workspace(org.UUID(), want.UUID)
	if !ok {
		switch read, err := s.current(ctx, u); {
		case err != nil:
			return controller.Result{}, err
		case read.Status.DefaultWorkspace != "" || !tenancy.Active(read):
			return controller.Result{}, errUnasked
		}
		return controller.Result{Message: "the default workspace is being created"}, s.workspaces.CreateChild(ctx, org.ClusterID, want)
	}
	// The spec is written first: after the status names the Workspace, this step does
	// nothing any more. It is only a hint, and need not wait until the Workspace is Ready.
	if ws.ClusterID != "" && u.Spec.DefaultCluster != ws.ClusterID {
		u.Spec.DefaultCluster = ws.ClusterID
		return controller.Result{Message: "the default workspace is being created"}, nil
	}
	if !ws.Ready() {
		return controller.Result{Message: "the default workspace is being created"}, nil
	}
	u.Status.DefaultWorkspace = ws.UUID
	return controller.Result{}, nil
}

// restore repairs the fields that name the Workspace. A Workspace that the User deleted is
// not created again.
func (s *defaultWorkspace) restore(u *v1alpha1.User) {
	org, ok := s.views.Org(u.Status.PersonalOrg)
	if !ok {
		return
	}
	if ws, ok := s.views.Workspace(org.UUID(), tenancy.NewDefaultWorkspace(org).UUID); ok && ws.ClusterID != "" {
		u.Status.DefaultWorkspace, u.Spec.DefaultCluster = ws.UUID, ws.ClusterID
	}
}
