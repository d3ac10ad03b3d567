package tenancy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestHubObject_isWhatTenantsCannotWrite(t *testing.T) {
	t.Parallel()
	account, err := json.Marshal(tenancy.BotAccount(&v1alpha1.Bot{}))
	require.NoError(t, err)
	secret, err := json.Marshal(tenancy.BotTokenSecret(&v1alpha1.Bot{}, "t"))
	require.NoError(t, err)
	namespace, err := json.Marshal(tenancy.Namespace())
	require.NoError(t, err)
	rules, err := tenancy.NewPolicy("hub")
	require.NoError(t, err)
	policy, err := json.Marshal(rules.Policy)
	require.NoError(t, err)
	binding := func(export string) string { return `{"spec":{"reference":{"export":{"name":"` + export + `"}}}}` }
	for name, c := range map[string]struct {
		kind, object string
		hubs         bool
	}{
		"the account of a bot":              {"/serviceaccounts", string(account), true},
		"the Secret of a token of a bot":    {"/secrets", string(secret), true},
		"the policy":                        {"admissionregistration.k8s.io/validatingadmissionpolicies", string(policy), true},
		"the default namespace":             {"/namespaces", string(namespace), true},
		"a role of the template":            {"rbac.authorization.k8s.io/clusterroles", `{"metadata":{"labels":{"tenancy.kedge.faros.sh/template":"true"}}}`, true},
		"a binding of the hub's API":        {"apis.kcp.io/apibindings", binding("access.kedge.faros.sh"), true},
		"a binding of a provider's API":     {"apis.kcp.io/apibindings", binding("widgets.example.org"), false},
		"a Secret":                          {"/secrets", `{"metadata":{"name":"kedge:a"}}`, false},
		"a Secret that names the label":     {"/secrets", `{"data":{"tenancy.kedge.faros.sh/managed-by":"kedge-hub"}}`, false},
		"a kind that the hub does not keep": {"/configmaps", string(secret), false},
		"no JSON":                           {"/secrets", "tenancy.kedge.faros.sh/", false},
	} {
		require.Equal(t, c.hubs, tenancy.HubObject(c.kind, []byte(c.object)), name)
	}
}
