package rights

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// claiming is an APIBinding of an export of its Workspace that rejects a number of claims, with an
// annotation of a length.
func claiming(claims, annotation int) string {
	rejected := make([]string, claims)
	for i := range rejected {
		rejected[i] = fmt.Sprintf(`{"group":"example.org","resource":"gadgets%d","verbs":["get"],"state":"Rejected","selector":{"matchAll":true}}`, i)
	}
	return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"claiming","annotations":{"example.org/about":"` + strings.Repeat("a", annotation) + `"}},` +
		`"spec":{"reference":{"export":{"name":"plain.example.org"}},"permissionClaims":[` + strings.Join(rejected, ",") + `]}}`
}

// exporting is an APIExport that claims a number of resources.
func exporting(claims int) string {
	claimed := make([]string, claims)
	for i := range claimed {
		claimed[i] = fmt.Sprintf(`{"group":"example.org","resource":"gadgets%d","identityHash":"a","verbs":["get"]}`, i)
	}
	return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"claims.example.org"},` +
		`"spec":{"permissionClaims":[` + strings.Join(claimed, ",") + `]}}`
}

// Every replica of the hub holds all APIBindings in memory.
func TestHostileAdmin_fillsNoCacheWithAPIBindings(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	framework.Eventually(t, framework.Long, func() error {
		errOut, err := s.kubectl(t, "bob", apiExport("plain", `{"crd":{}}`), "apply -f -")
		return framework.Check(err == nil, "%s", errOut)
	})
	// Bob may bind the export, as by an entry of the catalog.
	_, errOut, err := kcp.Kubectl(t, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: binders}
rules: [{apiGroups: [apis.kcp.io], resources: [apiexports], resourceNames: [plain.example.org], verbs: [bind]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: binders}
subjects: [{kind: User, name: bob, apiGroup: rbac.authorization.k8s.io}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: binders}
`, s.cluster, "create", "-f", "-")
	require.NoError(t, err, errOut)
	const create = "create --dry-run=server -f -"
	framework.Eventually(t, framework.Long, func() error {
		errOut, err := s.kubectl(t, "bob", claiming(64, 4096), create)
		return framework.Check(err == nil, "the control: %s", errOut)
	})
	each := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	selecting := func(selector string) string { return strings.Replace(claiming(1, 1), `{"matchAll":true}`, selector, 1) }
	long := strings.Repeat("a", 63)
	older := strings.NewReplacer("v1alpha2", "v1alpha1", `"verbs":["get"],`, "", `,"selector":{"matchAll":true}`, `,"all":true`)
	errOut, err = s.kubectl(t, "bob", selecting(`{"matchExpressions":[{"key":"example.org/team","operator":"In","values":["`+long+`"]}]}`), create)
	require.NoError(t, err, "the control: %s", errOut)
	for name, object := range map[string]string{
		"a long resource":                strings.Replace(claiming(1, 1), "gadgets0", "gadgets"+strings.Repeat("s", 12<<10), 1),
		"many verbs":                     strings.Replace(claiming(1, 1), `"get"`, each(700, `"get%d"`), 1),
		"many labels":                    selecting(`{"matchLabels":{` + each(100, `"a%d":"`+long+`"`) + `}}`),
		"many values":                    selecting(`{"matchExpressions":[{"key":"a","operator":"In","values":[` + each(200, `"v%d`+long[5:]+`"`) + `]}]}`),
		"many expressions":               selecting(`{"matchExpressions":[` + each(200, `{"key":"a%d","operator":"Exists"}`) + `]}`),
		"too many claims":                claiming(65, 1),
		"an export with too many claims": exporting(65),
		"an export with a long resource": strings.Replace(exporting(1), "gadgets0", "gadgets"+strings.Repeat("s", 12<<10), 1),
		"an export with claims in an annotation of an older version": `{"apiVersion":"apis.kcp.io/v1alpha1",` +
			`"kind":"APIExport","metadata":{"name":"claims.example.org",` +
			`"annotations":{"apis.v1alpha2.kcp.io/permission-claims":"` + strings.Repeat(" ", 12<<10) + `[]"}},"spec":{}}`,
	} {
		errOut, err := s.kubectl(t, "bob", object, create)
		require.Error(t, err, name)
		require.Contains(t, errOut, "at most 64 permission claims", name)
	}
	errOut, err = s.kubectl(t, "bob", exporting(64), create)
	require.NoError(t, err, "the control: %s", errOut)
	for name, object := range map[string]string{
		"a long annotation":                     claiming(1, 4097),
		"a long annotation in an older version": older.Replace(claiming(1, 4097)),
	} {
		errOut, err := s.kubectl(t, "bob", object, create)
		require.Error(t, err, name)
		require.Contains(t, errOut, "no annotation of more than", name)
	}
	errOut, err = s.kubectl(t, "bob", claiming(1, 1), "create -f -")
	require.NoError(t, err, errOut)
	errOut, err = s.kubectl(t, "bob", "", "annotate apibindings.apis.kcp.io claiming example.org/more="+strings.Repeat("a", 4097))
	require.Error(t, err)
	require.Contains(t, errOut, "no annotation of more than")
	errOut, err = s.kubectl(t, "bob", "", "annotate apibindings.apis.kcp.io claiming example.org/more=a")
	require.NoError(t, err, errOut)
}
