package membership

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what the reconciler reads from memory and writes to kcp.
type Config struct {
	Clock clock.PassiveClock
	Get   func(controller.Key) (*v1alpha1.Membership, bool)
	User  func(name string) (*v1alpha1.User, bool)
	// Cluster is the logical cluster of a Workspace of the Org whose own workspace is
	// in orgCluster; empty until kcp has placed it.
	Cluster func(orgCluster, workspace string) string
	// RoleProblem says why a role is not to be bound in a logical cluster. HasBinding tells
	// whether the User has a binding to it.
	RoleProblem func(cluster string, r v1alpha1.RoleRef) tenancy.RoleProblem
	HasBinding  func(cluster, user string, r v1alpha1.RoleRef) bool

	Patch func(ctx context.Context, key controller.Key, patch []byte, subresource string) error
}

// New returns the reconciler.
func New(c Config) controller.Func {
	return controller.Reconcile(controller.Kind[*v1alpha1.Membership]{
		Get:    c.Get,
		Copy:   (*v1alpha1.Membership).DeepCopy,
		Status: func(m *v1alpha1.Membership) *v1alpha1.CommonStatus { return &m.Status.CommonStatus },
		Patch:  c.Patch,
		Clock:  c.Clock,
	},
		&user{find: c.User},
		&roles{config: c},
	)
}

// user looks for the person whom the Membership is for.
type user struct {
	find func(name string) (*v1alpha1.User, bool)
}

func (*user) Condition() string { return v1alpha1.ConditionUserFound }

func (s *user) Reconcile(_ context.Context, m *v1alpha1.Membership) (controller.Result, error) {
	if _, ok := s.find(m.Spec.UserRef.Name); !ok {
		return controller.Result{Message: fmt.Sprintf("there is no person of the name %s", m.Spec.UserRef.Name)}, nil
	}
	return controller.Result{}, nil
}

// roles reports which roles of spec.roles are bound.
type roles struct{ config Config }

func (*roles) Condition() string { return v1alpha1.ConditionRolesApplied }

func (s *roles) Reconcile(_ context.Context, m *v1alpha1.Membership) (controller.Result, error) {
	m.Status.AppliedRoles = nil
	if m.Spec.WorkspaceRef == nil || len(m.Spec.Roles) == 0 {
		return controller.Result{}, nil
	}
	cluster := s.config.Cluster(string(logicalcluster.From(m)), m.Spec.WorkspaceRef.Name)
	if cluster == "" {
		return controller.Result{Message: "the workspace is still being made"}, nil
	}
	const pending tenancy.RoleProblem = "being bound"
	problems := map[tenancy.RoleProblem][]string{}
	for _, r := range m.Spec.Roles {
		name := tenancy.RoleName(r)
		switch problem := s.config.RoleProblem(cluster, r); {
		case problem != "":
			problems[problem] = append(problems[problem], name)
		case !s.config.HasBinding(cluster, m.Spec.UserRef.Name, r):
			problems[pending] = append(problems[pending], name)
		default:
			m.Status.AppliedRoles = append(m.Status.AppliedRoles, name)
		}
	}
	slices.Sort(m.Status.AppliedRoles)
	var says []string
	for _, problem := range slices.Sorted(maps.Keys(problems)) {
		says = append(says, string(problem)+": "+strings.Join(problems[problem], ", "))
	}
	return controller.Result{Message: strings.Join(says, "; ")}, nil
}
