package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// Policies keeps the admission policy in child Workspaces. It implements
// workspace.Policy.
type Policies struct {
	tenancy.Policy
	clients *kcp.Clients
	cache   views.Listers
}

// New returns the Policies that keep policy.
func New(policy tenancy.Policy, clients *kcp.Clients, cache views.Listers) *Policies {
	return &Policies{Policy: policy, clients: clients, cache: cache}
}

// InPlace implements workspace.Policy.
func (p *Policies) InPlace(cluster string) bool {
	policy, found := p.cache.Policies.Get(cluster, tenancy.PolicyName)
	binding, bound := p.cache.PolicyBindings.Get(cluster, tenancy.PolicyName)
	return found && bound && p.Policy.InPlace(policy.Annotations[tenancy.SpecHashAnnotation], binding.Annotations[tenancy.SpecHashAnnotation])
}

// Put implements workspace.Policy. The binding follows the policy: kcp refuses every
// request where it finds a binding without its policy.
func (p *Policies) Put(ctx context.Context, cluster string) error {
	if err := objects.Replace(ctx, p.clients.Policies(cluster), p.Policy.Policy.DeepCopy()); err != nil {
		return fmt.Errorf("write the admission policy: %w", err)
	}
	if err := objects.Replace(ctx, p.clients.PolicyBindings(cluster), p.Binding.DeepCopy()); err != nil {
		return fmt.Errorf("write the binding of the admission policy: %w", err)
	}
	return nil
}

// Enforced implements workspace.Policy.
func (p *Policies) Enforced(ctx context.Context, cluster string) (bool, error) {
	_, err := p.clients.ClusterRoleBindings(cluster).Create(ctx, p.Probe(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: kcp.FieldManager})
	if apierrors.IsForbidden(err) && p.RefusedProbe(err.Error()) {
		return true, nil
	}
	return false, err
}
