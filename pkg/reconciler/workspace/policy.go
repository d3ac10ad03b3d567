package workspace

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// probeEvery is the interval at which kcp is asked whether it enforces a new policy.
// Enforcement takes kcp up to a second.
const probeEvery = 200 * time.Millisecond

// abandoned is the time after which nothing asks for the rest of a window any more.
const abandoned = time.Minute

// Policy keeps the admission policy in the logical clusters of Workspaces.
type Policy interface {
	// InPlace reports whether the cache has the policy and its binding as desired.
	InPlace(cluster string) bool
	// Put writes the policy and its binding where kcp has them otherwise, and reports whether
	// it did.
	Put(ctx context.Context, cluster string) (changed bool, err error)
	// Enforced asks kcp with a dry run.
	Enforced(ctx context.Context, cluster string) (bool, error)
}

// policy writes the admission policy, before everything else in a Workspace, and waits until
// kcp enforces it. While the policy is not known to be enforced in the version of this hub,
// PolicyEnforced is False, and the proxy refuses the writes that the policy is about.
//
// A shard of kcp can run more than one process, and each reads policies for itself. A dry run
// asks one of them. So dry runs have to agree for window before the policy counts as enforced.
type policy struct {
	policy Policy
	clock  clock.PassiveClock
	window time.Duration

	mu sync.Mutex
	// agreed has the time since which all dry runs in a logical cluster were refused.
	agreed map[string]time.Time
}

func (*policy) Condition() string { return v1alpha1.ConditionPolicyEnforced }

func (s *policy) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	cluster, known := o.Spec.Cluster, isTrue(o, v1alpha1.ConditionPolicyEnforced)
	if !s.policy.InPlace(cluster) || controller.Forced(ctx) {
		changed, err := s.policy.Put(ctx, cluster)
		if err != nil || changed {
			s.disagree(cluster)
			known = false
		}
		if errors.Is(err, controller.ErrRetry) {
			// The condition of an ErrRetry would stay as it is.
			return controller.Result{Message: "the admission policy changed meanwhile and is written again", RequeueAfter: probeEvery, Stop: true}, nil
		}
		if err != nil {
			return controller.Result{}, err
		}
	}
	if known {
		return controller.Result{}, nil
	}
	ok, err := s.policy.Enforced(ctx, cluster)
	if err != nil || !ok {
		s.disagree(cluster)
	}
	switch {
	case err != nil:
		return controller.Result{}, err
	case !ok:
		return controller.Result{Message: "kcp does not enforce the admission policy yet", RequeueAfter: probeEvery}, nil
	}
	if left := s.left(cluster); left > 0 {
		return controller.Result{Message: "kcp enforces the admission policy in one process; others are asked", RequeueAfter: min(left, probeEvery)}, nil
	}
	return controller.Result{}, nil
}

// left notes a dry run that was refused, and returns the time for which further ones have to
// be. The policy counts as enforced when it is zero.
func (s *policy) left(cluster string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	since, ok := s.agreed[cluster]
	if !ok {
		since = now
		// Workspaces that were deleted meanwhile leave their entries behind.
		maps.DeleteFunc(s.agreed, func(_ string, at time.Time) bool { return now.Sub(at) > s.window+abandoned })
		s.agreed[cluster] = since
	}
	// The time stays until the policy changes: the write of the condition can fail.
	return max(0, s.window-now.Sub(since))
}

// disagree has the dry runs begin again.
func (s *policy) disagree(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.agreed, cluster)
}

func isTrue(o *object, condition string) bool {
	return meta.IsStatusConditionTrue(o.common.Conditions, condition)
}
