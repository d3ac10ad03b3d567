package server

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// hubNames asks kcp for the names under which it knows the hub. They are never
// configured: a wrong one would be a way past the admission policy of Workspaces.
func hubNames(ctx context.Context, cluster string, identities ...*kcp.Clients) ([]string, error) {
	names := make([]string, 0, len(identities))
	for _, c := range identities {
		name, err := c.Username(ctx, cluster)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// policies keeps the admission policy in Workspaces.
type policies struct {
	tenancy.Policy
	clients *kcp.Clients
	in      *views.Informers
}

// InPlace implements workspace.Policy.
func (p *policies) InPlace(cluster string) bool {
	policy, found := p.in.Policies.Get(cluster, tenancy.PolicyName)
	binding, bound := p.in.PolicyBindings.Get(cluster, tenancy.PolicyName)
	return found && bound && p.Policy.InPlace(policy.Annotations[tenancy.SpecHashAnnotation], binding.Annotations[tenancy.SpecHashAnnotation])
}

// Put implements workspace.Policy. The binding follows the policy: kcp refuses every
// request where it finds a binding without its policy.
func (p *policies) Put(ctx context.Context, cluster string) error {
	if err := replace(ctx, p.clients.Policies(cluster), p.Policy.Policy.DeepCopy()); err != nil {
		return fmt.Errorf("write the admission policy: %w", err)
	}
	if err := replace(ctx, p.clients.PolicyBindings(cluster), p.Binding.DeepCopy()); err != nil {
		return fmt.Errorf("write the binding of the admission policy: %w", err)
	}
	return nil
}

// Enforced implements workspace.Policy.
func (p *policies) Enforced(ctx context.Context, cluster string) (bool, error) {
	_, err := p.clients.ClusterRoleBindings(cluster).Create(ctx, p.Probe(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: kcp.FieldManager})
	if apierrors.IsForbidden(err) && p.RefusedProbe(err.Error()) {
		return true, nil
	}
	return false, err
}
