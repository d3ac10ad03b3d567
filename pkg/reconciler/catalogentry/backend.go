package catalogentry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// backend reports the last probe of the server of an entry. It does not wait for one.
type backend struct {
	probes *probes
	// begin asks for a probe.
	begin func(controller.Key)
}

func (*backend) Condition() string { return v1alpha1.ConditionBackendReachable }

func (s *backend) Reconcile(ctx context.Context, e *v1alpha1.CatalogEntry) (controller.Result, error) {
	if e.Spec.Backend == nil {
		return controller.Result{Note: "the entry names no server"}, nil
	}
	key := controller.Key{Cluster: clusterOf(e), Name: e.Name}
	problem, ok := s.probes.last(key)
	if !ok || controller.Forced(ctx) {
		s.begin(key)
	}
	if ok {
		return controller.Result{Message: problem}, nil
	}
	// A new leader keeps what the last one found out until it has probed the server itself.
	c := meta.FindStatusCondition(e.Status.Conditions, s.Condition())
	switch {
	case c == nil || c.ObservedGeneration != e.Generation:
		return controller.Result{Message: "the server of the provider has not been looked at yet"}, nil
	case c.Status == "True":
		return controller.Result{Note: c.Message}, nil
	}
	return controller.Result{Message: c.Message, Reason: c.Reason}, nil
}
