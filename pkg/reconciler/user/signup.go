package user

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// now is what kcp has of the very User that it is given, or controller.ErrRetry where
// that is gone. What a new person gets is made only while kcp has them without: to a
// memory that is behind, what was made and removed meanwhile looks as if it had never
// been.
type now func(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error)

var errUnasked = fmt.Errorf("%w: nobody asks for it any more", controller.ErrRetry)

// personalOrg makes the person's own Org, once: it is not made again where they
// deleted it.
type personalOrg struct {
	enabled bool
	org     func(uuid string) (tenancy.Org, bool)
	now     now
	create  func(ctx context.Context, o *v1alpha1.Organization) error
}

func (*personalOrg) Condition() string { return v1alpha1.ConditionPersonalOrg }

func (s *personalOrg) Reconcile(ctx context.Context, u *v1alpha1.User) (controller.Result, error) {
	o := tenancy.NewPersonalOrg(u)
	if !s.enabled || u.Status.PersonalOrg == o.Name {
		return controller.Result{}, nil
	}
	if _, ok := s.org(o.Name); !ok && u.Status.PersonalOrg == "" {
		switch held, err := s.now(ctx, u); {
		case err != nil:
			return controller.Result{}, err
		case held.Status.PersonalOrg != "":
			return controller.Result{}, errUnasked
		}
		if err := s.create(ctx, o); err != nil {
			return controller.Result{}, err
		}
	}
	u.Status.PersonalOrg = o.Name
	return controller.Result{}, nil
}

// defaultWorkspace makes a Workspace in the person's own Org, once, when they may
// work. Who deleted that Org before it had one goes without.
type defaultWorkspace struct {
	enabled   bool
	org       func(uuid string) (tenancy.Org, bool)
	workspace func(org, workspace string) (tenancy.Workspace, bool)
	// exists asks kcp itself whether there is an Org.
	exists func(ctx context.Context, uuid string) (bool, error)
	now    now
	create func(ctx context.Context, orgCluster string, w tenancy.Workspace) error
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
	org, ok := s.org(u.Status.PersonalOrg)
	if !ok && meta.FindStatusCondition(u.Status.Conditions, s.Condition()) != nil {
		// Memory may not have yet what was made a moment ago; in the first pass it
		// never has.
		if there, err := s.exists(ctx, u.Status.PersonalOrg); err != nil || !there {
			return controller.Result{}, err
		}
	}
	switch {
	case ok && org.Deleted():
		return controller.Result{}, nil
	case !ok || org.Status.Phase != v1alpha1.PhaseReady || org.ClusterID == "":
		return controller.Result{Message: "the person's own organization is being made"}, nil
	}
	want := tenancy.NewDefaultWorkspace(org)
	ws, ok := s.workspace(org.UUID(), want.UUID)
	if !ok {
		switch held, err := s.now(ctx, u); {
		case err != nil:
			return controller.Result{}, err
		case held.Status.DefaultWorkspace != "" || !tenancy.Active(held):
			return controller.Result{}, errUnasked
		}
		return controller.Result{Message: "the default workspace is being made"}, s.create(ctx, org.ClusterID, want)
	}
	if !ws.Ready() {
		return controller.Result{Message: "the default workspace is being made"}, nil
	}
	// The spec comes first: once the status says that it is there, this step rests.
	if u.Spec.DefaultCluster != ws.ClusterID {
		u.Spec.DefaultCluster = ws.ClusterID
		return controller.Result{Message: "the default workspace is being made"}, nil
	}
	u.Status.DefaultWorkspace = ws.UUID
	return controller.Result{}, nil
}

// restore puts back what somebody altered of where the Workspace is. One that people
// removed is not made again.
func (s *defaultWorkspace) restore(u *v1alpha1.User) {
	org, ok := s.org(u.Status.PersonalOrg)
	if !ok {
		return
	}
	if ws, ok := s.workspace(org.UUID(), tenancy.NewDefaultWorkspace(org).UUID); ok && ws.ClusterID != "" {
		u.Status.DefaultWorkspace, u.Spec.DefaultCluster = ws.UUID, ws.ClusterID
	}
}
