package tenancy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func allowing(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verbs}, APIGroups: []string{groups}, Resources: []string{resources}, ResourceNames: names}
}

func onURL(verb, url string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{url}}
}

// cachedMeta is the metadata of a tenant's role in the cache.
func cachedMeta(name string, rules ...rbacv1.PolicyRule) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{tenancy.RulesAnnotation: tenancy.EncodeRules(rules)}}
}

// roles is a Workspace with the admin role, the namespace dev and the namespace going, which
// is being deleted.
type roles struct {
	cluster    map[string]*rbacv1.ClusterRole
	namespaced map[string]*rbacv1.Role
	bindable   []string
}

func newRoles() *roles {
	admin := tenancy.ClusterRoles([]tenancy.BoundResource{{Group: "example.com", Resource: "widgets"}})[0]
	return &roles{cluster: map[string]*rbacv1.ClusterRole{admin.Name: admin}, namespaced: map[string]*rbacv1.Role{}}
}

func (r *roles) add(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r.cluster[name] = &rbacv1.ClusterRole{ObjectMeta: cachedMeta(name, rules...)}
	return r.cluster[name]
}

func (r *roles) addIn(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	key := tenancy.NamespacedName(namespace, name)
	r.namespaced[key] = &rbacv1.Role{ObjectMeta: cachedMeta(name, rules...)}
	return r.namespaced[key]
}

func (r *roles) resolve(namespace, name string) (rbacv1.RoleRef, tenancy.RoleProblem) {
	return tenancy.RoleSource{
		ClusterRole: func(name string) (*rbacv1.ClusterRole, bool) { o, ok := r.cluster[name]; return o, ok },
		Role: func(namespace, name string) (*rbacv1.Role, bool) {
			o, ok := r.namespaced[tenancy.NamespacedName(namespace, name)]
			return o, ok
		},
		Namespace: func(name string) (metav1.Object, bool) {
			switch name {
			case "dev":
				return &metav1.ObjectMeta{Name: name}, true
			case "going":
				return &metav1.ObjectMeta{Name: name, DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}, true
			}
			return nil, false
		},
		Bindable: r.bindable,
	}.Resolve(v1alpha1.RoleRef{Namespace: namespace, Name: name})
}

func TestRoleSource_bindsOnlyWhatTheAdminRoleCovers(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("x%d", i)
	}
	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  tenancy.RoleProblem
	}{
		"nothing":                      {nil, ""},
		"covered":                      {[]rbacv1.PolicyRule{allowing("get", "", "configmaps")}, ""},
		"covered for one name":         {[]rbacv1.PolicyRule{allowing("delete", "", "secrets", "one")}, ""},
		"covered subresource":          {[]rbacv1.PolicyRule{allowing("patch", "example.com", "widgets/status")}, ""},
		"covered by several rules":     {[]rbacv1.PolicyRule{{Verbs: []string{"get", "create"}, APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}}}, ""},
		"covered URL":                  {[]rbacv1.PolicyRule{onURL("get", "/apis/x")}, ""},
		"another resource":             {[]rbacv1.PolicyRule{allowing("get", "example.com", "gadgets")}, tenancy.RoleNotCovered},
		"another group":                {[]rbacv1.PolicyRule{allowing("get", "example.org", "widgets")}, tenancy.RoleNotCovered},
		"write of what admins read":    {[]rbacv1.PolicyRule{allowing("create", "", "resourcequotas")}, tenancy.RoleNotCovered},
		"the second rule":              {[]rbacv1.PolicyRule{allowing("get", "", "configmaps"), allowing("escalate", "rbac.authorization.k8s.io", "clusterroles")}, tenancy.RoleNotCovered},
		"impersonate":                  {[]rbacv1.PolicyRule{allowing("impersonate", "", "users", "alice")}, tenancy.RoleNotCovered},
		"every verb":                   {[]rbacv1.PolicyRule{allowing("*", "", "configmaps")}, tenancy.RoleNotCovered},
		"every group":                  {[]rbacv1.PolicyRule{allowing("get", "*", "configmaps")}, tenancy.RoleNotCovered},
		"every resource":               {[]rbacv1.PolicyRule{allowing("get", "", "*")}, tenancy.RoleNotCovered},
		"a subresource of everything":  {[]rbacv1.PolicyRule{allowing("get", "example.com", "*/status")}, tenancy.RoleNotCovered},
		"every URL":                    {[]rbacv1.PolicyRule{onURL("get", "*")}, tenancy.RoleNotCovered},
		"another verb of a URL":        {[]rbacv1.PolicyRule{onURL("post", "/api")}, tenancy.RoleNotCovered},
		"more actions than are tested": {[]rbacv1.PolicyRule{{Verbs: many[:40], APIGroups: many[:40], Resources: many[:40], ResourceNames: many[:40]}}, tenancy.RoleTooLarge},
		"longer than is cached":        {[]rbacv1.PolicyRule{allowing("get", "", "configmaps", slices.Repeat([]string{"a-long-name-of-a-configmap"}, 500)...)}, tenancy.RoleTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoles()
			r.add("extra", tc.rules...)
			r.addIn("dev", "own", tc.rules...)
			found, problem := r.resolve("", "extra")
			require.Equal(t, tc.want, problem)
			require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "extra"}, found)
			_, problem = r.resolve("dev", "extra")
			require.Equal(t, tc.want, problem)
			found, problem = r.resolve("dev", "own")
			require.Equal(t, tc.want, problem)
			require.Equal(t, "Role", found.Kind)

			// Without the admin role nothing is covered.
			delete(r.cluster, tenancy.ClusterRoleAdmin)
			_, problem = r.resolve("", "extra")
			require.NotEmpty(t, problem)
		})
	}
}

func TestRoleSource_followsRolesThatChange(t *testing.T) {
	t.Parallel()
	r := newRoles()
	problem := func(namespace, name string) tenancy.RoleProblem { _, p := r.resolve(namespace, name); return p }
	require.Equal(t, tenancy.RoleMissing, problem("", "extra"))
	r.add("extra", allowing("get", "example.com", "widgets"))
	require.Empty(t, problem("", "extra"))
	r.add("extra", allowing("get", "example.com", "widgets"), allowing("bind", "rbac.authorization.k8s.io", "clusterroles"))
	require.Equal(t, tenancy.RoleNotCovered, problem("", "extra"), "the role has grown")
	r.add("extra", allowing("get", "example.com", "widgets"))
	r.cluster[tenancy.ClusterRoleAdmin] = tenancy.ClusterRoles(nil)[0]
	require.Equal(t, tenancy.RoleNotCovered, problem("", "extra"), "the API is not bound any more")
	r.add("extra").DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	require.Equal(t, tenancy.RoleMissing, problem("", "extra"))

	require.Equal(t, tenancy.RoleNamespaceMissing, problem("missing", "extra"))
	require.Equal(t, tenancy.RoleNamespaceMissing, problem("going", "extra"))
	require.Equal(t, tenancy.RoleMissing, problem("dev", "extra"))
}

func TestRoleSource_prefersARoleToAClusterRole(t *testing.T) {
	t.Parallel()
	r := newRoles()
	r.bindable = []string{"editor"}
	r.add("editor", allowing("escalate", "rbac.authorization.k8s.io", "roles"))
	own := r.addIn("dev", "editor", allowing("get", "", "configmaps"))
	found, problem := r.resolve("dev", "editor")
	require.Equal(t, "Role", found.Kind)
	require.Empty(t, problem)

	// The operator lists ClusterRoles: a Role of that name does not pass as one.
	own.ObjectMeta = cachedMeta("editor", allowing("escalate", "rbac.authorization.k8s.io", "roles"))
	found, problem = r.resolve("dev", "editor")
	require.Equal(t, "Role", found.Kind)
	require.Equal(t, tenancy.RoleNotCovered, problem)

	own.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	found, problem = r.resolve("dev", "editor")
	require.Equal(t, "ClusterRole", found.Kind)
	require.Empty(t, problem)
	found, _ = r.resolve("", "editor")
	require.Equal(t, "ClusterRole", found.Kind)
}

func TestRoleSource_bindsWhatTheOperatorLists(t *testing.T) {
	t.Parallel()
	r := newRoles()
	r.add("cluster-admin", allowing("get", "", "configmaps"))
	r.add("above", allowing("*", "*", "*"))
	r.add("sum", allowing("get", "", "configmaps")).AggregationRule = &rbacv1.AggregationRule{}
	problem := func(name string) tenancy.RoleProblem { _, p := r.resolve("", name); return p }
	require.Equal(t, tenancy.RoleNotCovered, problem("above"))
	require.Equal(t, tenancy.RoleAggregated, problem("sum"))
	r.bindable = []string{"above", "sum", "cluster-admin", tenancy.ClusterRoleAdmin}
	require.Empty(t, problem("above"))
	require.Empty(t, problem("sum"))
	for _, name := range []string{"cluster-admin", tenancy.ClusterRoleAdmin, "system:x"} {
		require.Equal(t, tenancy.RoleReserved, problem(name), name)
	}
	r.bindable = nil
	require.Equal(t, tenancy.RoleNotCovered, problem("above"), "the operator has taken it off the list")
}

func TestRoleSource_refusesRolesWithoutReadableRules(t *testing.T) {
	t.Parallel()
	r := newRoles()
	for _, encoded := range []string{"", "{", "7"} {
		r.add("extra").Annotations[tenancy.RulesAnnotation] = encoded
		_, problem := r.resolve("", "extra")
		require.Equal(t, tenancy.RoleTooLarge, problem, encoded)
	}
	// The rules of a tenant's role count only as the cache encodes them.
	r.add("extra").Annotations = nil
	r.cluster["extra"].Rules = []rbacv1.PolicyRule{allowing("get", "", "configmaps")}
	_, problem := r.resolve("", "extra")
	require.Equal(t, tenancy.RoleTooLarge, problem)
	r.add("extra", allowing("get", "", "configmaps"))
	_, problem = r.resolve("", "extra")
	require.Empty(t, problem, "the positive control")

	// An admin role without the hub's label is not the hub's.
	r.cluster[tenancy.ClusterRoleAdmin].Labels = nil
	_, problem = r.resolve("", "extra")
	require.Equal(t, tenancy.RoleNotCovered, problem)
}
