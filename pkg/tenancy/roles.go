package tenancy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Names of the ClusterRoles that the hub keeps in every child Workspace.
const (
	ClusterRoleAdmin  = "kedge:workspace:admin"
	ClusterRoleMember = "kedge:workspace:member"
	ClusterRoleViewer = "kedge:workspace:viewer"
)

// DefaultNamespace is the namespace that every child Workspace has.
const DefaultNamespace = "default"

// clusterRoleOf is the ClusterRole of an effective role.
func clusterRoleOf(role v1alpha1.Role) string {
	switch role {
	case v1alpha1.RoleAdmin:
		return ClusterRoleAdmin
	case v1alpha1.RoleMember:
		return ClusterRoleMember
	}
	return ClusterRoleViewer
}

// Groups of the API that every kcp workspace serves by itself.
const (
	groupRBAC         = "rbac.authorization.k8s.io"
	groupKCPAPIs      = "apis.kcp.io"
	groupKCPCore      = "core.kcp.io"
	groupAdmission    = "admissionregistration.k8s.io"
	groupExtensions   = "apiextensions.k8s.io"
	groupCache        = "cache.kcp.io"
	groupCertificates = "certificates.k8s.io"
	groupEvents       = "events.k8s.io"
	groupLeases       = "coordination.k8s.io"
	groupAuthn        = "authentication.k8s.io"
	groupAuthz        = "authorization.k8s.io"
)

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
)

// reservedGroup tells whether a bound API may not be opened to tenants as a
// whole, because of what the group can do: the hub's own rules cover it.
func reservedGroup(group string) bool {
	switch group {
	case "", groupRBAC, groupKCPAPIs, groupKCPCore, groupAdmission, groupExtensions, groupCache,
		groupCertificates, groupEvents, groupLeases, groupAuthn, groupAuthz, "tenancy.kcp.io", v1alpha1.GroupName:
		return true
	}
	return false
}

// ClusterRoles are the roles of a child Workspace in which the APIs of the given
// groups are bound, and in which there are CustomResourceDefinitions of the given
// names. No role has a wildcard group, because that would hold the LogicalCluster,
// nor "*" as a verb, because that would hold escalate, bind and impersonate, nor a
// wildcard non-resource URL.
func ClusterRoles(boundGroups []string, customResources ...string) []*rbacv1.ClusterRole {
	var extra []string
	for _, g := range boundGroups {
		if !reservedGroup(g) {
			extra = append(extra, g)
		}
	}
	slices.Sort(extra)
	extra = slices.Compact(extra)

	// Admission is for nobody to write: a policy in a Workspace is asked about the hub's
	// own writes there, too. One that changes them makes its author cluster-admin, and
	// one that refuses them keeps the rights of who is to lose them.
	admin := []rbacv1.PolicyRule{
		rule(write, append([]string{"", groupRBAC, groupExtensions, groupCache, groupCertificates, groupEvents, groupLeases}, extra...), "*"),
		// Not their status: in that of a binding kcp and the hub read what the hub sees of
		// the Workspace.
		rule(write, []string{groupKCPAPIs}, "apibindings", "apiexports", "apiexports/content", "apiexportendpointslices", "apiresourceschemas", "apiconversions"),
		rule(read, []string{groupAdmission, groupKCPAPIs}, "*"),
		rule([]string{"create"}, []string{groupAuthn, groupAuthz}, "*"),
		rule(read, []string{groupKCPCore}, "logicalclusters"),
	}
	// Subresources are not under a member's "*" in the core group: one of them is
	// serviceaccounts/token, with which a member would become any bot.
	member := []rbacv1.PolicyRule{
		rule(write, []string{""}, "configmaps", "secrets", "events", "namespaces", "serviceaccounts"),
		rule(read, []string{""}, "resourcequotas", "namespaces/status", "resourcequotas/status"),
		rule(write, append([]string{groupEvents, groupLeases}, extra...), "*"),
		rule(read, []string{groupRBAC, groupKCPAPIs, groupAdmission, groupExtensions}, "*"),
		rule(read, []string{groupKCPCore}, "logicalclusters"),
	}
	viewer := []rbacv1.PolicyRule{
		rule(read, []string{""}, "configmaps", "events", "namespaces", "serviceaccounts", "resourcequotas"),
		rule(read, append([]string{groupEvents, groupLeases, groupRBAC, groupKCPAPIs, groupExtensions}, extra...), "*"),
		rule(read, []string{groupKCPCore}, "logicalclusters"),
	}
	admin = append(admin, customRules(write, customResources)...)
	member = append(member, customRules(write, customResources)...)
	viewer = append(viewer, customRules(read, customResources)...)
	return []*rbacv1.ClusterRole{
		clusterRole(ClusterRoleAdmin, admin), clusterRole(ClusterRoleMember, member), clusterRole(ClusterRoleViewer, viewer),
	}
}

func clusterRole(name string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: managed(name),
		Rules: append(rules,
			rule([]string{"create"}, []string{groupAuthz}, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			rule([]string{"create"}, []string{groupAuthn}, "selfsubjectreviews"),
			// kcp lets nobody into a workspace without access on "/".
			rbacv1.PolicyRule{Verbs: []string{"access"}, NonResourceURLs: []string{"/"}},
			rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{
				"/", "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/",
				"/healthz", "/livez", "/readyz",
			}},
		),
	}
}

func rule(verbs, groups []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources}
}

func managed(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}}
}

// Namespace is the default namespace of a child Workspace.
func Namespace() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: managed(DefaultNamespace),
	}
}
