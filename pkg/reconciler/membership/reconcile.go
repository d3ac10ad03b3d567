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
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Views are the caches beside that of the Memberships.
type Views interface {
	ByName(user string) (*v1alpha1.User, bool)
	OrgByCluster(cluster string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	// HasExtraBinding tells whether a User has a binding to a role of spec.roles.
	HasExtraBinding(cluster, user string, r v1alpha1.RoleRef) bool
}

// New returns the reconciler. problem says why a role is not to be bound in a logical cluster.
func New(v Views, memberships objects.Memberships, problem problemFunc, clock clock.PassiveClock) controller.Func {
	return controller.Reconcile(controller.Kind[*v1alpha1.Membership]{
		Get: func(key controller.Key) (*v1alpha1.Membership, bool) {
			if org, ok := v.OrgByCluster(key.Cluster); !ok || org.Deactivated() {
				return nil, false
			}
			return memberships.ByKey(key)
		},
		Copy:   (*v1alpha1.Membership).DeepCopy,
		Status: func(m *v1alpha1.Membership) *v1alpha1.CommonStatus { return &m.Status.CommonStatus },
		Patch:  memberships.Commit,
		Clock:  clock,
	},
		&user{find: v.ByName},
		&roles{views: v, problem: problem},
	)
}

type problemFunc func(cluster string, r v1alpha1.RoleRef) tenancy.RoleProblem

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
type roles struct {
	views   Views
	problem problemFunc
}

func (*roles) Condition() string { return v1alpha1.ConditionRolesApplied }

func (s *roles) Reconcile(_ context.Context, m *v1alpha1.Membership) (controller.Result, error) {
	m.Status.AppliedRoles = nil
	if m.Spec.WorkspaceRef == nil || len(m.Spec.Roles) == 0 {
		return controller.Result{}, nil
	}
	cluster := ""
	if org, ok := s.views.OrgByCluster(string(logicalcluster.From(m))); ok {
		ws, _ := s.views.Workspace(org.UUID(), m.Spec.WorkspaceRef.Name)
		cluster = ws.ClusterID
	}
	if cluster == "" {
		return controller.Result{Message: "the workspace is still being made"}, nil
	}
	const pending tenancy.RoleProblem = "being bound"
	problems := map[tenancy.RoleProblem][]string{}
	for _, r := range m.Spec.Roles {
		name := tenancy.RoleName(r)
		switch problem := s.problem(cluster, r); {
		case problem != "":
			problems[problem] = append(problems[problem], name)
		case !s.views.HasExtraBinding(cluster, m.Spec.UserRef.Name, r):
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
