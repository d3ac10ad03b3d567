package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const policyCluster = "workspace1"

func newPolicies(t *testing.T) (*Policies, *kcpfake.Server) {
	t.Helper()
	p, err := tenancy.NewPolicy("kcp-admin")
	require.NoError(t, err)
	server := kcpfake.New(t)
	return New(p, server.Clients(), server.Clients(), nil), server
}

func TestPolicies_putBothObjectsAndRepairThem(t *testing.T) {
	t.Parallel()
	p, server := newPolicies(t)
	for range 2 {
		changed, err := p.Put(t.Context(), policyCluster)
		require.NoError(t, err)
		require.True(t, changed)
		policy, err := p.clients.Policies(policyCluster).Get(t.Context(), tenancy.PolicyName, metav1.GetOptions{})
		require.NoError(t, err)
		binding, err := p.clients.PolicyBindings(policyCluster).Get(t.Context(), tenancy.PolicyName, metav1.GetOptions{})
		require.NoError(t, err)
		require.True(t, p.Policy.InPlace(tenancy.PolicyHash(policy), tenancy.PolicyBindingHash(binding)))
		server.ForgetRequests()
		changed, err = p.Put(t.Context(), policyCluster)
		require.NoError(t, err)
		require.False(t, changed, "kcp has them already")
		policy.Spec.Validations, policy.Labels = policy.Spec.Validations[:1], nil
		_, err = p.clients.Policies(policyCluster).Update(t.Context(), policy, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

func TestPolicies_areEnforcedWhereKcpRefusesTheProbe(t *testing.T) {
	t.Parallel()
	p, server := newPolicies(t)
	refusing := func(message string) kcpfake.Fault {
		return func(r kcpfake.Request) error {
			require.Equal(t, []string{metav1.DryRunAll}, r.Query["dryRun"], "nothing is written")
			if message == "" {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, errMessage(message))
		}
	}
	for message, enforced := range map[string]bool{
		"denied request: the policy " + p.Hash + " is enforced":    true,
		"denied request: the policy 0123456789abcdef is enforced":  false,
		"User \"kcp-admin\" cannot create resource in API group":   false,
		"denied request: bindings are for ServiceAccounts of this": false,
	} {
		server.FailBefore(refusing(message))
		got, err := p.Enforced(t.Context(), policyCluster)
		require.Equal(t, enforced, got, message)
		require.Equal(t, enforced, err == nil, "a refusal for another reason is an error: %v", err)
	}
	server.FailBefore(refusing(""))
	got, err := p.Enforced(t.Context(), policyCluster)
	require.NoError(t, err)
	require.False(t, got)
}

type errMessage string

func (e errMessage) Error() string { return string(e) }
