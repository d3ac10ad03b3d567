package tenancy

import (
	"maps"
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// The names of the ClusterRoles that the hub keeps in every child Workspace.
const (
	ClusterRoleAdmin  = "kedge:workspace:admin"
	ClusterRoleMember = "kedge:workspace:member"
	ClusterRoleViewer = "kedge:workspace:viewer"
)

// DefaultNamespace is the namespace that every child Workspace has.
const DefaultNamespace = "default"

// clusterRoleOf is the ClusterRole of an effective role. No other role has one.
func clusterRoleOf(role v1alpha1.Role) string { return "kedge:workspace:" + string(role) }

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

// Resources that several roles list.
var (
	rbacResources      = []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}
	admissionResources = []string{
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
	}
)

// reservedGroups are the groups whose resources tenants must not use unless a role of the hub
// lists them. Bound resources of such a group get no rules.
var reservedGroups = []string{
	"", groupRBAC, groupKCPAPIs, groupKCPCore, groupAdmission, groupExtensions, groupCache,
	groupCertificates, groupEvents, groupLeases, groupAuthn, groupAuthz, "tenancy.kcp.io", v1alpha1.GroupName,
}

func reservedGroup(group string) bool { return slices.Contains(reservedGroups, group) }

// BoundResource is a resource that an APIBinding brings into a Workspace.
type BoundResource struct {
	Group, Resource string
	// ReadOnly is true for a resource that members may only read.
	ReadOnly bool
}

// BoundResources are the resources that APIBindings bring into a Workspace. memberResources
// returns those of the API of a binding that members may write, as spec.memberResources of a
// CatalogEntry lists them; none means all.
func BoundResources(bindings []*kcpapisv1alpha2.APIBinding, memberResources func(*kcpapisv1alpha2.APIBinding) []string) []BoundResource {
	var bound []BoundResource
	for _, b := range bindings {
		if len(b.Status.BoundResources) == 0 {
			continue
		}
		listed := memberResources(b)
		for _, r := range b.Status.BoundResources {
			bound = append(bound, BoundResource{r.Group, r.Resource, !membersWrite(listed, r.Group, r.Resource)})
		}
	}
	return bound
}

// membersWrite reports whether spec.memberResources lets members write a resource.
func membersWrite(listed []string, group, resource string) bool {
	return len(listed) == 0 || slices.Contains(listed, resource) || slices.Contains(listed, ResourceName(group, resource))
}

// ClusterRoles returns the roles of a child Workspace with these bound resources and these
// CustomResourceDefinitions. They list API groups, resources and verbs: a wildcard would
// cover whatever kcp comes to serve, and as a verb escalate, bind and impersonate.
//
// Tenants only read admission, because a policy in the Workspace is asked about the writes
// of the hub, too, and resource quotas, because one could keep the hub from creating a
// binding. They do not update the status of kcp's APIs, where kcp and the hub read which
// claims were applied.
func ClusterRoles(bound []BoundResource, customResources ...string) []*rbacv1.ClusterRole {
	admin := []rbacv1.PolicyRule{
		rule(write, []string{""}, "configmaps", "events", "namespaces", "secrets", "serviceaccounts"),
		rule([]string{"create"}, []string{""}, "serviceaccounts/token"),
		rule(read, []string{""}, "namespaces/status", "resourcequotas", "resourcequotas/status"),
		rule(write, []string{groupRBAC}, rbacResources...),
		rule(write, []string{groupExtensions}, "customresourcedefinitions"),
		rule(read, []string{groupExtensions}, "customresourcedefinitions/status"),
		rule(write, []string{groupEvents}, "events"),
		rule(write, []string{groupLeases}, "leases"),
		rule(write, []string{groupKCPAPIs}, "apibindings", "apiexports", "apiexports/content", "apiexportendpointslices", "apiresourceschemas", "apiconversions"),
		rule(read, []string{groupKCPAPIs}, "apibindings/status", "apiexports/status", "apiexportendpointslices/status"),
		rule(read, []string{groupAdmission}, admissionResources...),
		rule([]string{"create"}, []string{groupAuthz}, "localsubjectaccessreviews", "subjectaccessreviews"),
		rule(read, []string{groupKCPCore}, "logicalclusters"),
	}
	member := []rbacv1.PolicyRule{
		rule(write, []string{""}, "configmaps", "events", "namespaces", "secrets"),
		rule(read, []string{""}, "namespaces/status", "resourcequotas", "resourcequotas/status", "serviceaccounts"),
		rule(write, []string{groupEvents}, "events"),
		rule(write, []string{groupLeases}, "leases"),
		rule(read, []string{groupAdmission}, admissionResources...),
	}
	viewer := []rbacv1.PolicyRule{
		rule(read, []string{""}, "configmaps", "events", "namespaces", "resourcequotas", "serviceaccounts"),
		rule(read, []string{groupEvents}, "events"),
		rule(read, []string{groupLeases}, "leases"),
	}
	look := []rbacv1.PolicyRule{
		rule(read, []string{groupRBAC}, rbacResources...),
		rule(read, []string{groupExtensions}, "customresourcedefinitions"),
		rule(read, []string{groupKCPAPIs}, "apibindings", "apiexports", "apiexportendpointslices", "apiresourceschemas", "apiconversions"),
		rule(read, []string{groupKCPCore}, "logicalclusters"),
	}
	writable, readable := slices.Clone(bound), slices.Clone(bound)
	writable = slices.DeleteFunc(writable, func(r BoundResource) bool { return r.ReadOnly })
	readable = slices.DeleteFunc(readable, func(r BoundResource) bool { return !r.ReadOnly })
	admin = slices.Concat(admin, boundRules(write, bound, "/scale", "/status"), customRules(write, customResources))
	member = slices.Concat(member, look, boundRules(write, writable), boundRules(read, readable), customRules(write, customResources))
	viewer = slices.Concat(viewer, look, boundRules(read, bound), customRules(read, customResources))
	return []*rbacv1.ClusterRole{
		clusterRole(ClusterRoleAdmin, admin), clusterRole(ClusterRoleMember, member), clusterRole(ClusterRoleViewer, viewer),
	}
}

// boundRules returns one rule for each group of the bound resources, with these
// subresources of each resource.
func boundRules(verbs []string, bound []BoundResource, subresources ...string) []rbacv1.PolicyRule {
	byGroup := map[string][]string{}
	for _, r := range bound {
		if !tenantGroup(r.Group) {
			continue
		}
		byGroup[r.Group] = append(byGroup[r.Group], r.Resource)
		for _, sub := range subresources {
			byGroup[r.Group] = append(byGroup[r.Group], r.Resource+sub)
		}
	}
	return groupRules(verbs, byGroup)
}

// groupRules returns one rule for each group, in the order of their names.
func groupRules(verbs []string, byGroup map[string][]string) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(byGroup))
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		slices.Sort(byGroup[group])
		rules = append(rules, rule(verbs, []string{group}, slices.Compact(byGroup[group])...))
	}
	return rules
}

func clusterRole(name string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: managed(name),
		Rules: append(rules,
			rule([]string{"create"}, []string{groupAuthz}, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			rule([]string{"create"}, []string{groupAuthn}, "selfsubjectreviews"),
			// kcp requires the verb access on "/" to enter a workspace.
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

// ManagedByHub reports whether an object has the label of the hub's derived objects.
func ManagedByHub(o metav1.Object) bool {
	return o.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByHub
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
