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
	clients, probes *kcp.Clients
	cache           *views.Views
}

// New returns the Policies that keep policy. probes sends the dry runs.
func New(policy tenancy.Policy, clients, probes *kcp.Clients, cache *views.Views) *Policies {
	return &Policies{Policy: policy, clients: clients, probes: probes, cache: cache}
}

// InPlace implements workspace.Policy.
func (p *Policies) InPlace(cluster string) bool {
	policy, found := p.cache.Policies.Get(cluster, tenancy.PolicyName)
	binding, bound := p.cache.PolicyBindings.Get(cluster, tenancy.PolicyName)
	return found && bound && p.Policy.InPlace(policy.Annotations[tenancy.SpecHashAnnotation], binding.Annotations[tenancy.SpecHashAnnotation])
}

// Put implements workspace.Policy. The binding follows the policy: kcp refuses every
// request where it finds a binding without its policy.
func (p *Policies) Put(ctx context.Context, cluster string) (changed bool, err error) {
	policyChanged, err := put(ctx, objects.Of("validatingadmissionpolicies", p.clients.Policies, nil), cluster, p.Policy.Policy.DeepCopy(), tenancy.PolicyHash)
	if err != nil {
		return policyChanged, fmt.Errorf("write the admission policy: %w", err)
	}
	bindingChanged, err := put(ctx, objects.Of("validatingadmissionpolicybindings", p.clients.PolicyBindings, nil), cluster, p.Binding.DeepCopy(), tenancy.PolicyBindingHash)
	if err != nil {
		return true, fmt.Errorf("write the binding of the admission policy: %w", err)
	}
	return policyChanged || bindingChanged, nil
}

// put writes an object unless kcp has one with the same hash.
func put[T kcp.Object](ctx context.Context, stored objects.Repository[T], cluster string, want T, hash func(T) string) (changed bool, err error) {
	if _, err = stored.Make(ctx, cluster, want); !apierrors.IsAlreadyExists(err) {
		return true, err
	}
	have, err := stored.Read(ctx, cluster, want.GetName())
	if err != nil {
		return true, err
	}
	if hash(have) == hash(want) {
		return false, nil
	}
	want.SetResourceVersion(have.GetResourceVersion())
	return true, stored.Replace(ctx, cluster, want)
}

// Enforced implements workspace.Policy.
func (p *Policies) Enforced(ctx context.Context, cluster string) (bool, error) {
	_, err := p.probes.ClusterRoleBindings(cluster).Create(ctx, p.Probe(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: kcp.FieldManager})
	if apierrors.IsForbidden(err) && p.RefusedProbe(err.Error()) {
		return true, nil
	}
	return false, err
}
