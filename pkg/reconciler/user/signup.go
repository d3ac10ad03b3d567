package user

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// personalOrg makes the person's own Org, once: it is not made again where they
// deleted it.
type personalOrg struct {
	enabled bool
	org     func(uuid string) (tenancy.Org, bool)
	create  func(ctx context.Context, o *v1alpha1.Organization) error
}

func (*personalOrg) Condition() string { return v1alpha1.ConditionPersonalOrg }

func (s *personalOrg) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Outcome, error) {
	if !s.enabled || u.Status.PersonalOrg != "" {
		return controller.Outcome{}, nil
	}
	o := tenancy.NewPersonalOrg(u)
	if _, ok := s.org(o.Name); !ok {
		if err := s.create(ctx, o); err != nil {
			return controller.Outcome{}, err
		}
	}
	u.Status.PersonalOrg = o.Name
	return controller.Outcome{}, nil
}

// defaultWorkspace makes a Workspace in the person's own Org, once, when they may
// work.
type defaultWorkspace struct {
	enabled   bool
	org       func(uuid string) (tenancy.Org, bool)
	workspace func(org, workspace string) (tenancy.Workspace, bool)
	create    func(ctx context.Context, orgCluster string, w tenancy.Workspace) error
}

func (*defaultWorkspace) Condition() string { return v1alpha1.ConditionDefaultWorkspace }

func (s *defaultWorkspace) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Outcome, error) {
	if !s.enabled || u.Status.DefaultWorkspace != "" {
		return controller.Outcome{}, nil
	}
	if !tenancy.Active(u) {
		return controller.Outcome{Waiting: "the registration waits for approval"}, nil
	}
	org, ok := s.org(u.Status.PersonalOrg)
	switch {
	case ok && org.Deleted():
		return controller.Outcome{}, nil
	case !ok || org.Status.Phase != v1alpha1.PhaseReady || org.ClusterID == "":
		return controller.Outcome{Waiting: "the person's own organization is being made"}, nil
	}
	want := tenancy.NewDefaultWorkspace(org)
	ws, ok := s.workspace(org.UUID(), want.UUID)
	if !ok {
		return controller.Outcome{Waiting: "the default workspace is being made"}, s.create(ctx, org.ClusterID, want)
	}
	if !ws.Ready() {
		return controller.Outcome{Waiting: "the default workspace is being made"}, nil
	}
	// The spec comes first: once the status says that it is there, this step rests.
	if u.Spec.DefaultCluster != ws.ClusterID {
		u.Spec.DefaultCluster = ws.ClusterID
		return controller.Outcome{Waiting: "the default workspace is being made"}, nil
	}
	u.Status.DefaultWorkspace = ws.UUID
	return controller.Outcome{}, nil
}
