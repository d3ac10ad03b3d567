package tenancy_test

import (
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestCatalogExport_mustBeInAProviderOrInTheOrg(t *testing.T) {
	t.Parallel()
	const ws, other = "bbbbbbbb-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		org, path, export string
		workspace, field  string
	}{
		"a provider, Global":           {"", "root:kedge:providers:acme", "widgets", "", ""},
		"a provider":                   {catalogOrg, "root:kedge:providers:acme", "widgets", "", ""},
		"below a provider":             {catalogOrg, "root:kedge:providers:acme:eu", "widgets", "", ""},
		"a Workspace of the Org":       {catalogOrg, tree.Workspace(catalogOrg, ws), "widgets", ws, ""},
		"a Workspace, Global":          {"", tree.Workspace(catalogOrg, ws), "widgets", "", "apiExport.path"},
		"a Workspace of another Org":   {catalogOrg, tree.Workspace(other, ws), "widgets", "", "apiExport.path"},
		"below a Workspace":            {catalogOrg, tree.Workspace(catalogOrg, ws) + ":x", "widgets", "", "apiExport.path"},
		"the workspace of the Org":     {catalogOrg, tree.Org(catalogOrg), "widgets", "", "apiExport.path"},
		"providers":                    {"", "root:kedge:providers", "widgets", "", "apiExport.path"},
		"a sibling of providers":       {"", "root:kedge:providersx:acme", "widgets", "", "apiExport.path"},
		"users":                        {"", "root:kedge:users", "widgets", "", "apiExport.path"},
		"root":                         {"", "root", "widgets", "", "apiExport.path"},
		"beside the hub":               {catalogOrg, "root:other:providers:acme", "widgets", "", "apiExport.path"},
		"a logical cluster":            {catalogOrg, "2x7k9q", "widgets", "", "apiExport.path"},
		"an export of the hub":         {"", "root:kedge:providers:acme", "tenancy.kedge.faros.sh", "", "apiExport.name"},
		"another export of the hub":    {catalogOrg, "root:kedge:providers:acme", "access.kedge.faros.sh", "", "apiExport.name"},
		"an export of kcp":             {catalogOrg, tree.Workspace(catalogOrg, ws), "tenancy.kcp.io", "", "apiExport.name"},
		"another export of kcp":        {"", "root", "shards.core.kcp.io", "", "apiExport.name"},
		"a name that only looks so":    {"", "root:kedge:providers:acme", "notkcp.io", "", ""},
		"a provider of the Org's name": {catalogOrg, "root:kedge:providers:" + catalogOrg, "widgets", "", ""},
	} {
		got, err := tenancy.CheckCatalogExport(tree, c.org, v1alpha1.APIExportRef{Path: c.path, Name: c.export})
		require.Equal(t, c.workspace, got, name)
		requireField(t, err, c.field, name)
	}
}

// requireField asks that err is about a field, or nil if field is empty.
func requireField(t *testing.T, err error, field, name string) {
	t.Helper()
	if field == "" {
		require.NoError(t, err, name)
		return
	}
	var e *errs.Error
	require.ErrorAs(t, err, &e, name)
	require.Contains(t, []errs.Code{errs.Invalid, errs.Unprocessable}, e.Code, name)
	require.Equal(t, field, e.Causes[0].Field, name)
}

func TestDangerousClaim_marksWhatTakesAWorkspaceOver(t *testing.T) {
	t.Parallel()
	some := &kcpapisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	all := &kcpapisv1alpha2.PermissionClaimSelector{MatchAll: true}
	where := func(operator metav1.LabelSelectorOperator) *kcpapisv1alpha2.PermissionClaimSelector {
		return &kcpapisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: operator}}}}
	}
	get := []string{"get"}
	for name, c := range map[string]struct {
		group, resource string
		verbs           []string
		selector        *kcpapisv1alpha2.PermissionClaimSelector
		dangerous       bool
	}{
		"configmaps":                     {"", "configmaps", []string{"get", "create"}, nil, false},
		"all verbs":                      {"", "configmaps", []string{"*"}, some, true},
		"secrets":                        {"", "secrets", get, nil, true},
		"all secrets":                    {"", "secrets", get, all, true},
		"secrets by an empty selector":   {"", "secrets", get, &kcpapisv1alpha2.PermissionClaimSelector{}, true},
		"some secrets":                   {"", "secrets", get, some, false},
		"secrets that have a label":      {"", "secrets", get, where("Exists"), false},
		"secrets without a label":        {"", "secrets", get, where("DoesNotExist"), true},
		"secrets without a value":        {"", "secrets", get, where("NotIn"), true},
		"secrets of another group":       {"example.org", "secrets", get, nil, false},
		"roles":                          {"rbac.authorization.k8s.io", "clusterroles", get, some, true},
		"bindings":                       {"apis.kcp.io", "apibindings", get, some, true},
		"exports":                        {"apis.kcp.io", "apiexports", get, nil, false},
		"a resource that is all of them": {"example.org", "*", get, nil, true},
	} {
		require.Equal(t, c.dangerous, tenancy.DangerousClaim(c.group, c.resource, c.verbs, c.selector), name)
	}
}

func TestClaims_areAllAnswered(t *testing.T) {
	t.Parallel()
	secrets, widgets := v1alpha1.CatalogResource{Resource: "secrets"}, v1alpha1.CatalogResource{Group: "example.org", Resource: "widgets"}
	asked := []v1alpha1.CatalogClaim{
		{Resource: "secrets", Verbs: []string{"get", "list"}},
		{Group: "example.org", Resource: "widgets", IdentityHash: "1", Verbs: []string{"get"}}, {Group: "example.org", Resource: "widgets", IdentityHash: "2", Verbs: []string{"get"}},
	}
	policies := v1alpha1.CatalogResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}
	policiesBy := func(verbs ...string) []v1alpha1.CatalogClaim {
		return []v1alpha1.CatalogClaim{{Group: policies.Group, Resource: policies.Resource, Verbs: verbs}}
	}
	of := func(all ...v1alpha1.CatalogResource) []v1alpha1.CatalogResource { return all }
	for name, c := range map[string]struct {
		claims             []v1alpha1.CatalogClaim
		accepted, rejected []v1alpha1.CatalogResource
		fields             []string
	}{
		"nothing asked":                    {nil, nil, nil, nil},
		"all accepted":                     {asked, of(secrets, widgets), nil, nil},
		"one rejected":                     {asked, of(widgets), of(secrets), nil},
		"all rejected":                     {asked, nil, of(secrets, widgets), nil},
		"what admins may not change":       {policiesBy("get", "delete"), of(policies), nil, []string{"acceptClaims"}},
		"the same, of any verb":            {policiesBy("*"), of(policies), nil, []string{"acceptClaims"}},
		"the same, rejected":               {policiesBy("*"), nil, of(policies), nil},
		"the same, to be read":             {policiesBy("get", "list", "watch"), of(policies), nil, nil},
		"one not answered":                 {asked, of(secrets), nil, []string{"acceptClaims"}},
		"none answered":                    {asked, nil, nil, []string{"acceptClaims", "acceptClaims"}},
		"one answered twice":               {asked, of(secrets, widgets), of(secrets), []string{"rejectClaims"}},
		"one that is not asked":            {asked[:1], of(secrets, widgets), nil, []string{"acceptClaims"}},
		"a rejection of what is not asked": {asked[:1], of(secrets), of(widgets), []string{"rejectClaims"}},
	} {
		err := tenancy.ClaimsAnswered(c.claims, c.accepted, c.rejected)
		if c.fields == nil {
			require.NoError(t, err, name)
			continue
		}
		var e *errs.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, errs.Unprocessable, e.Code, name)
		var fields []string
		for _, cause := range e.Causes {
			fields = append(fields, cause.Field)
		}
		require.Equal(t, c.fields, fields, name)
	}
}
