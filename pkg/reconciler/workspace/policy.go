package workspace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// probeEvery is the interval at which kcp is asked whether it enforces a new policy.
// Enforcement takes kcp up to a second.
const probeEvery = 200 * time.Millisecond

// Policy keeps the admission policy in the logical clusters of Workspaces.
type Policy interface {
	// InPlace reports whether the cache has the policy and its binding as desired.
	InPlace(cluster string) bool
	// Put writes the policy and its binding.
	Put(ctx context.Context, cluster string) error
	// Enforced asks kcp with a dry run.
	Enforced(ctx context.Context, cluster string) (bool, error)
	// RemoveLegacy removes existing objects of tenants that the policy would refuse, and
	// counts them by kind.
	RemoveLegacy(ctx context.Context, cluster string) (map[string]int, error)
}

// enforced waits until kcp enforces the policy, which the step content writes.
type enforced struct{ policy Policy }

func (*enforced) Condition() string { return v1alpha1.ConditionPolicyEnforced }

func (s *enforced) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	cluster := o.Spec.Cluster
	if isTrue(o, v1alpha1.ConditionPolicyEnforced) && !o.policyWritten {
		return controller.Result{}, nil
	}
	ok, err := s.policy.Enforced(ctx, cluster)
	if err != nil || ok {
		return controller.Result{}, err
	}
	return controller.Result{Message: "kcp does not enforce the admission policy yet", RequeueAfter: probeEvery}, nil
}

// legacy removes, once, objects that the policy refuses and that tenants created before
// it was enforced.
type legacy struct{ policy Policy }

func (*legacy) Condition() string { return v1alpha1.ConditionLegacyRemoved }

func (s *legacy) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	if done := meta.FindStatusCondition(o.common.Conditions, v1alpha1.ConditionLegacyRemoved); isTrue(o, v1alpha1.ConditionLegacyRemoved) {
		return controller.Result{Note: done.Message}, nil
	}
	if !isTrue(o, v1alpha1.ConditionPolicyEnforced) {
		return controller.Result{Message: "kcp does not enforce the admission policy yet"}, nil
	}
	counts, err := s.policy.RemoveLegacy(ctx, o.Spec.Cluster)
	return controller.Result{Note: removed(counts)}, err
}

// removed returns the condition message for the removed objects.
func removed(counts map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if counts[what] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "removed " + strings.Join(parts, ", ")
}

func isTrue(o *object, condition string) bool {
	return meta.IsStatusConditionTrue(o.common.Conditions, condition)
}
